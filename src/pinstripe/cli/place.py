"""`pinstripe place`: which cores each instance would get."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinstripe.cli.console import print_json
from pinstripe.cli.group_options import GroupsOption, read_groups
from pinstripe.cli.options import Bind, CoreKindOption, Json, Reserve, Root, SmtOption, StrategyOption, read_wish

if TYPE_CHECKING:
    from pinstripe.placement import Placement

__all__ = ["place"]


def place(
    *,
    instances: Annotated[int | None, typer.Option(help="Number of instances.")] = None,
    cores: Annotated[int | None, typer.Option(help="Physical cores of each instance.")] = None,
    groups: GroupsOption = None,
    strategy: StrategyOption = "close",
    smt: SmtOption = "one",
    core_kind: CoreKindOption = "performance",
    reserve: Reserve = 0,
    bind: Bind = None,
    root: Root = Path("/"),
    as_json: Json = False,
) -> None:
    """Say which CPUs and memory nodes each instance would get; nothing is started.

    Example: pinstripe place --instances 4 --cores 12

    Example: pinstripe place --groups "<=32: 4x1, rest: 1x8"
    """
    import msgspec  # noqa: PLC0415

    from pinstripe.configuration import instance_sizes  # noqa: PLC0415
    from pinstripe.machine import read_machine  # noqa: PLC0415
    from pinstripe.placement import place as place_on  # noqa: PLC0415

    wish = read_wish(
        instances=instances,
        cores=cores,
        strategy=strategy,
        smt=smt,
        core_kind=core_kind,
        reserve=reserve,
        bind=bind,
    )
    if groups is not None:
        wish = msgspec.structs.replace(wish, sizes=instance_sizes(read_groups(groups)))
    placement = place_on(read_machine(root), wish)
    if as_json:
        print_json(placement)
    else:
        typer.echo("\n".join(_lines(placement)))


def _lines(placement: "Placement") -> list[str]:
    from pinstripe.machine import format_cpu_list  # noqa: PLC0415

    lines = []
    for index, instance in enumerate(placement.instances):
        nodes = f", memory from node {format_cpu_list(instance.nodes)}" if instance.nodes else ""
        lines.append(f"instance {index}: CPUs {format_cpu_list(instance.cpus)}{nodes}")
    if placement.reserved:
        lines.append(f"reserved: CPUs {format_cpu_list(placement.reserved)}")
    if placement.idle:
        lines.append(f"idle: CPUs {format_cpu_list(placement.idle)}")
    lines.extend(f"note: {warning}" for warning in placement.warnings)
    return lines
