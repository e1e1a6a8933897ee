"""Instances on explicitly named CPUs."""

from collections import Counter
from collections.abc import Iterable

from pinstripe.errors import MachineError, PlacementError
from pinstripe.machine import Machine, format_cpu_list, parse_cpu_list
from pinstripe.placement.cores import cut_to
from pinstripe.placement.layout import Layout
from pinstripe.placement.wish import Wish
from pinstripe.placement.words import counted, named_cpus

__all__ = ["bound_layout", "describe_shared_cores"]

_DEFAULTS = Wish()


def bound_layout(machine: Machine, bind: str, wish: Wish) -> Layout:
    """Put instances on exactly the CPUs that `bind` names, be they isolated or siblings.

    Args:
        machine: The machine.
        bind: CPU lists with `|` between instances. Each as numactl takes them (numactl(8), `--physcpubind`): `0-3,8`;
            `all`; `!0-3` for all allowed but these; `+0-3` counted from the first allowed CPU.
        wish: What else is wished; nothing in it may say anything different.

    Raises:
        PlacementError: `bind` is malformed, names CPUs twice or such as may not be used, or contradicts `wish`.
    """
    parts = [_cpus(machine, text.strip(), number) for number, text in enumerate(bind.split("|"))]
    repeated = _repeated(cpu for part in parts for cpu in part)
    if repeated:
        cpus = named_cpus(repeated)
        raise PlacementError(f"--bind names {cpus} for more than one instance; instances cannot share CPUs")
    layout = tuple(cut_to(machine.cores, part) for part in parts)
    _check_agreement(layout, wish)
    return layout


def describe_shared_cores(machine: Machine, layout: Layout) -> list[str]:
    """Say which instances share cores: their threads slow each other down."""
    owner = {cpu: number for number, cores in enumerate(layout) for core in cores for cpu in core.cpus}
    shared: dict[tuple[int, ...], list[int]] = {}
    for core in machine.cores:
        sharers = sorted({owner[cpu] for cpu in core.cpus if cpu in owner})
        if len(sharers) > 1:
            shared.setdefault(tuple(sharers), []).extend(core.cpus)
    return [
        f"Instances {' and '.join(map(str, sharers))} share cores ({named_cpus(cpus)}) and slow each other down."
        for sharers, cpus in shared.items()
    ]


def _cpus(machine: Machine, text: str, number: int) -> list[int]:
    """Read the CPUs of one instance and check that each can be had."""
    cpus = _read(machine, text, number)
    if not cpus:
        raise PlacementError(f"--bind names no CPU for instance {number} ({text!r}); write lists such as 0-3|4-7")
    offline = set(cpus) - set(machine.online)
    forbidden = set(cpus) - offline - set(machine.allowed)
    for wrong, problem, advice in (
        (_repeated(cpus), "twice", "name each once"),
        (offline, "but not online", f"allowed are {format_cpu_list(machine.allowed)}"),
        (forbidden, "forbidden by affinity mask or cpuset", f"allowed are {format_cpu_list(machine.allowed)}"),
    ):
        if wrong:
            raise PlacementError(f"--bind names {named_cpus(wrong)} for instance {number}, {problem}; {advice}")
    return cpus


def _read(machine: Machine, text: str, number: int) -> list[int]:
    """Read one list in numactl's syntax; CPUs named twice are returned twice."""
    if text == "all":
        return list(machine.allowed)
    mode, plain = (text[0], text[1:]) if text.startswith(("!", "+")) else ("", text)
    try:
        parse_cpu_list(plain)
    except MachineError as error:
        raise PlacementError(f"--bind, instance {number}: {error}") from None
    named = [cpu for item in plain.split(",") for cpu in parse_cpu_list(item)]
    if mode == "!" and named:
        return [cpu for cpu in machine.allowed if cpu not in named]
    if mode == "+":
        return [_nth_allowed(machine, place, number) for place in named]
    return named


def _nth_allowed(machine: Machine, place: int, number: int) -> int:
    if place >= len(machine.allowed):
        raise PlacementError(
            f"--bind, instance {number}: there is no allowed CPU +{place}; "
            f"the {len(machine.allowed)} allowed ones are +0 to +{len(machine.allowed) - 1}"
        )
    return machine.allowed[place]


def _check_agreement(layout: Layout, wish: Wish) -> None:
    options = ("strategy", "smt", "core_kind", "reserve")
    clashing = [option for option in options if getattr(wish, option) != getattr(_DEFAULTS, option)]
    sizes = sorted({len(cores) for cores in layout})
    if wish.instances not in {None, len(layout)}:
        clashing.append("instances")
    if wish.cores is not None and sizes != [wish.cores]:
        clashing.append("cores")
    if clashing:
        names = ", ".join(f"--{option.replace('_', '-')} {getattr(wish, option)}" for option in clashing)
        named = f"{counted(len(layout), 'instance')} of {' and '.join(counted(size, 'core') for size in sizes)}"
        raise PlacementError(f"--bind already says where ({named}), against {names}; leave out one or the other")


def _repeated(cpus: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(cpu for cpu, count in Counter(cpus).items() if count > 1))
