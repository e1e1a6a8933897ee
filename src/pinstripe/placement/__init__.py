"""Which cores does each instance get? Pure functions of a machine and a wish."""

from pinstripe.placement.place import place
from pinstripe.placement.wish import (
    CoreKindWish,
    InstancePlacement,
    Placement,
    SmtUse,
    Strategy,
    Wish,
)

__all__ = ["CoreKindWish", "InstancePlacement", "Placement", "SmtUse", "Strategy", "Wish", "place"]
