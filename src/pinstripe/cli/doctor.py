"""`pinstripe doctor`: what this machine offers, and what is wrong with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinstripe.cli.options import Json, Root
from pinstripe.errors import UsageError

if TYPE_CHECKING:
    from pinstripe.diagnosis import Observations

__all__ = ["doctor"]

_DEFAULT_ENGINE = "torch-eager"
_LIVE_ONLY = ("busy neighbours", "installed allocators, OpenMP runtimes and engines")


def doctor(
    *,
    everything: Annotated[bool, typer.Option("--all", "-v", help="Explain notes too, and list what is good.")] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Measure what cannot be read, for some minutes: noise, the peak of matrix products, neighbours.",
        ),
    ] = False,
    root: Root = Path("/"),
    as_json: Json = False,
) -> None:
    """Say what this machine offers, what makes models slow on it, and how to mend that.

    It shows a map of the cores, and findings with how sure they are: certain (the kernel says so), likely or possible.

    Example: pinstripe doctor -v
    """
    # Here and in the other commands: what `pinstripe --help` has no use for is imported where it is used.
    from pinstripe.cli.console import print_json, standard_output  # noqa: PLC0415
    from pinstripe.cli.findings import print_findings, print_machine  # noqa: PLC0415
    from pinstripe.diagnosis import diagnose, observe  # noqa: PLC0415

    measured: dict[str, Any] = {}
    seen = observe(root)
    if measure:
        if seen.activity is None:
            raise UsageError(f"--measure measures this machine, not the copy in {root}; leave one of both out")
        from pinstripe.cli.checkup import check_up  # noqa: PLC0415

        seen, measured = check_up(seen)
    findings = diagnose(seen)
    if as_json:
        print_json({**_described(seen), **measured, "findings": findings})
        return
    console = standard_output()
    print_machine(seen, console)
    print_findings(findings, console, everything=everything)
    if seen.activity is None:
        console.print(f"not looked at, in a copy: {', '.join(_LIVE_ONLY)}", style="dim")
    if measured.get("noise_reason"):
        console.print(f"noise not measured: {measured['noise_reason']}", style="dim")
    reason, command = _next_step(seen, root)
    console.print(f"\nnext: {reason}")
    console.print(f"  {command}", style="cyan", soft_wrap=True)


def _described(seen: "Observations") -> dict[str, Any]:
    import msgspec  # noqa: PLC0415

    described: dict[str, Any] = msgspec.to_builtins(seen)
    for node in described["machine"]["nodes"]:
        del node["neighbours"]  # ranks that placement works with; what doctor prints is fixed
    return described


def _next_step(seen: "Observations", root: Path) -> tuple[str, str]:
    from pinstripe.cli.shell import shell_word  # noqa: PLC0415

    if seen.engines is None:
        return "see where instances would go", f"pinstripe place --root {shell_word(str(root))}"
    ready = [name for name, needed in seen.engines.items() if all(needed.values())]
    if not ready:
        return "install an engine, such as", "pip install torch transformers"
    engine = "" if _DEFAULT_ENGINE in ready else f"--engine {ready[0]} "
    baseline = _DEFAULT_ENGINE if _DEFAULT_ENGINE in ready else ready[0]
    command = (
        f"pinstripe bench random:minilm-l6 {engine}--baseline {baseline} --instances 1,per-core --scenario offline"
    )
    return "compare what a framework does by itself with pinned cores", command
