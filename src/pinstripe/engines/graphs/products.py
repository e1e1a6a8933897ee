"""Precisions of a loaded graph's matrix products with weights, as the library has arranged them."""

from collections import Counter

from pinstripe.engines.protocol import Precision
from pinstripe.errors import EngineError

__all__ = ["Products", "check_products", "computed_precision", "describe_products"]

Products = Counter[str]
"""Number of products by the precision that they are computed in."""


def computed_precision(products: Products) -> str:
    """Return the precision of most products; `float32` where there are none."""
    return products.most_common(1)[0][0] if products else "float32"


def check_products(products: Products, precision: Precision, path: str) -> None:
    """Refuse a graph that is not computed in the precision that was asked for.

    Of an int8 graph only most products are: a quantizer may leave some that cost accuracy in float32.

    Raises:
        EngineError: So it is; the message counts the products.
    """
    others = set(products) - ({precision, "float32"} if precision == "int8" else {precision})
    if others or computed_precision(products) != precision:
        actual = describe_products(products) or "there are none"
        message = f"{path} is not computed in {precision} here: of its products with weights, {actual}"
        raise EngineError(f"{message}; choose another precision, or another file with --file")


def describe_products(products: Products) -> str:
    """Return such as `35 in int8, 1 in float32`."""
    return ", ".join(f"{count} in {precision}" for precision, count in products.most_common())
