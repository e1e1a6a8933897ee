"""Which cores does each instance get? Pure functions of a machine and a wish.

`place` goes through these rules, each in the file of its name:

    wish        what can be asked for, and the answer
    cores       which cores may be used: allowed, not isolated, of the wished kind, not reserved
    groups      what an instance should not leave: NUMA nodes, level-3 groups
    shapes      how many instances of how many cores, best first
    layout      which cores each of them gets; `spanning` chooses the nodes of one that fits into none
    quota       how many threads may run at once
    packing     instances of several sizes into nodes, so that few have to leave theirs
    search      the first shape whose layout keeps to that; `unbound` calls it, `refusal` says why there is none
    bind        CPUs that are named instead
    memory      from which nodes an instance's memory comes
"""

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
