"""Options that say how the forward pass runs: engines, their options, precisions, and where they are installed."""

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pinstripe.cli.options import choice, named_values, split_list
from pinstripe.errors import UsageError

if TYPE_CHECKING:
    from pinstripe.api import Wanted
    from pinstripe.configuration import InstanceGroup
    from pinstripe.engines import OptionValue, Precision

__all__ = [
    "CalibrationOption",
    "PythonOption",
    "python_of",
    "read_engines",
    "read_pythons",
    "read_wanted",
    "read_ways",
]

_ALL: Final = "all"
_KINDS: Final = {".onnx": "onnx", ".xml": "openvino"}

CalibrationOption = Annotated[
    str | None,
    typer.Option(help="Texts like yours, from which a static int8 quantization takes its scales.", metavar="FILE"),
]
PythonOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Python of the environment that the engine, or this one, is installed in: tf-graph=/opt/tf/bin/python.",
        metavar="[ENGINE=]PATH",
    ),
]


def read_pythons(texts: Sequence[str]) -> dict[str | None, str]:
    """Return interpreters by the engine that each is for; None for all others.

    Raises:
        UsageError: An engine is unknown or named twice, or a path is no interpreter.
    """
    from pinstripe.engines import engine, engine_names  # noqa: PLC0415
    from pinstripe.engines.other_python import check_python  # noqa: PLC0415

    pythons: dict[str | None, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (equals and (name in engine_names() or "/" not in name)):
            name, path = "", text  # no engine, or a path with that sign in it
        if name:
            engine(name)
        if (name or None) in pythons:
            raise UsageError(f"--python is given twice for {name or 'all engines'}; leave one out")
        check_python(path)
        pythons[name or None] = path
    return pythons


def python_of(engine: str, pythons: Mapping[str | None, str]) -> str | None:
    """Return the interpreter for an engine; None for this one."""
    return pythons.get(engine, pythons.get(None))


def read_engines(text: str, pythons: Mapping[str | None, str]) -> list[str]:
    """Return the engines of a list; `all` is every one that is installed here, or where `pythons` says.

    Raises:
        UsageError: One is unknown, or none is installed.
    """
    from pinstripe.engines import engine  # noqa: PLC0415

    names = split_list(text, "--engine", str)
    if _ALL not in names:
        return [engine(name).name for name in names]
    from pinstripe.engines.inventory import list_engines  # noqa: PLC0415

    installed = [one.name for one in list_engines(pythons) if one.available]
    if not installed:
        raise UsageError("no engine is installed; run `pip install 'pinstripe[all]'`")
    return installed


def read_ways(
    engines: Sequence[str],
    *,
    precisions: "Sequence[Precision]",
    options: Sequence[str],
    file: str | None,
    calibration: str | None,
    pythons: Mapping[str | None, str],
) -> list[dict[str, Any]]:
    """Return the part of each `Configuration` that says how the forward pass runs, over all engines and values.

    Args:
        engines: Names.
        precisions: Precisions.
        options: `[ENGINE.]NAME=VALUE[,VALUE…]` each.
        file: A graph, for the engines that read its kind, or for all if none does.
        calibration: File of texts, for those that take fixed scales from it, or for all if none does.
        pythons: See `read_pythons`.

    Raises:
        UsageError: An option is not understood.
    """
    values = {name: split_list(text, "--option", _value) for name, text in named_values(options, "--option").items()}
    _check_engines_named(values, engines)
    ways = [
        {
            "engine": name,
            "precision": precision,
            "options": chosen,
            "file": file if _reads(name, file, engines) else None,
            "python": python_of(name, pythons),
        }
        for name in engines
        for chosen in _chosen_options(name, values)
        for precision in precisions
    ]
    calibrated = [way for way in ways if _takes_calibration(way)]
    for way in calibrated or ways:
        way["calibration"] = calibration
    return ways


def read_wanted(
    engine: str | None,
    *,
    precision: str,
    options: Sequence[str],
    calibration: str | None,
    pythons: Sequence[str],
    knobs: Sequence[str] = (),
    file: str | None = None,
    instances: int | None = None,
    cores: int | None = None,
    groups: "tuple[InstanceGroup, ...]" = (),
    also: Collection[str] = (),
) -> "Wanted":
    """Return what the options of a command with one configuration say; `also` are engines that run besides.

    Raises:
        UsageError: One is not understood, or is for a certain engine and none is named.
    """
    from pinstripe.api import Wanted  # noqa: PLC0415
    from pinstripe.engines import Precision  # noqa: PLC0415
    from pinstripe.engines import engine as engine_of  # noqa: PLC0415

    interpreters = read_pythons(pythons)
    named = [name for name in interpreters if name is not None and name not in also]
    if engine is None and len(named) == 1:
        engine = named[0]
    if engine is not None:
        engine_of(engine)
    if others := [name for name in named if name != engine]:
        raise UsageError(f"--python {others[0]}=… is for an engine that is not asked for; leave it out")
    own = f"{engine}."
    return Wanted(
        engine=engine,
        precision=choice(precision, Precision, "--precision"),
        instances=instances,
        cores=cores,
        groups=groups,
        file=file,
        calibration=calibration,
        python=next(iter(interpreters.values()), None) if engine is None else python_of(engine, interpreters),
        knobs=_chosen_knobs(knobs),
        options={name.removeprefix(own): _value(text) for name, text in named_values(options, "--option").items()},
    )


def _chosen_knobs(texts: Sequence[str]) -> dict[str, str]:
    """Return knobs by name, without those that are left as they are; a name may be written as an option is."""
    from pinstripe.knobs import AUTO  # noqa: PLC0415

    named = {name.replace("-", "_"): value for name, value in named_values(texts, "--knob").items()}
    return {name: value for name, value in named.items() if value != AUTO}


def _check_engines_named(options: "Mapping[str, object]", engines: Sequence[str]) -> None:
    """Refuse options of engines that do not run: one of them may be a slip."""
    from pinstripe.engines import engine as engine_of  # noqa: PLC0415

    for option in options:
        owner, dot, _ = option.partition(".")
        if dot and owner not in engines:
            engine_of(owner)
            raise UsageError(
                f"--option {option} is for {owner}, which is not among the engines asked for; leave it out"
            )


def _chosen_options(engine: str, values: "Mapping[str, Sequence[OptionValue]]") -> "list[dict[str, OptionValue]]":
    """Return every choice among the options of an engine: those named without one, and those named with its own.

    Those that are as the engine has them anyway are left out, so that one configuration does not appear as two.
    """
    from pinstripe.engines import engine as engine_of  # noqa: PLC0415

    own = f"{engine}."
    names = {name.removeprefix(own): name for name in values if "." not in name or name.startswith(own)}
    usual = engine_of(engine).options_type()
    return [
        {name: value for name, value in zip(names, chosen, strict=True) if getattr(usual, name, None) != value}
        for chosen in product(*(values[name] for name in names.values()))
    ]


def _takes_calibration(way: Mapping[str, Any]) -> bool:
    return bool(way["precision"] == "int8" and way["options"].get("quantization") == "static")


def _reads(engine: str, file: str | None, engines: Sequence[str]) -> bool:
    """Return whether the file is meant for this engine: it reads that kind, or none of the engines does."""
    from pinstripe.engines import engine as engine_of  # noqa: PLC0415

    kind = _KINDS.get(Path(file or "").suffix)
    readers = [name for name in engines if engine_of(name).format == kind]
    return engine in readers or not readers


def _value(text: str) -> "OptionValue":
    """Return a number or truth value if the text reads as one."""
    if text in {"true", "false"}:
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
