"""Options that say which model is meant."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pinstripe.cli.options import named_values
from pinstripe.errors import UsageError

if TYPE_CHECKING:
    from pinstripe.models import Overrides

__all__ = ["OverrideOption", "Revision", "read_overrides"]

_PROMPT: Final = "prompts."

OverrideOption = Annotated[
    list[str] | None,
    typer.Option(
        "--override",
        help="Correct what the model's files say: task, pooling (mean, cls, …), dense, max_tokens, dimensions, "
        "prompts.NAME, aggregation, stride; may be repeated.",
        metavar="NAME=VALUE",
    ),
]
Revision = Annotated[str | None, typer.Option(help="Revision of a hub model.")]


def read_overrides(texts: Sequence[str]) -> "Overrides":
    """Read what the user says of the model, as NAME=VALUE each.

    Raises:
        UsageError: A name or value is not known.
    """
    import msgspec  # noqa: PLC0415

    from pinstripe.models import Overrides  # noqa: PLC0415

    values = named_values(texts, "--override")
    prompts = {name.removeprefix(_PROMPT): text for name, text in values.items() if name.startswith(_PROMPT)}
    fields: dict[str, Any] = {name: text for name, text in values.items() if not name.startswith(_PROMPT)}
    if prompts:
        fields["prompts"] = prompts
    if "pooling" in values:
        fields["pooling"] = values["pooling"].split(",")
    try:
        return msgspec.convert(fields, Overrides, strict=False)
    except msgspec.ValidationError as error:
        names = ", ".join(Overrides.__struct_fields__)
        raise UsageError(f"--override is not understood: {error}; it takes {names}") from error
