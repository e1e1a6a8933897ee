"""What to say when a wish cannot be met."""

from collections import Counter

from pinstripe.machine import Machine
from pinstripe.placement.groups import describe_sizes
from pinstripe.placement.quota import describe_quota, thread_limit
from pinstripe.placement.search import Search
from pinstripe.placement.wish import Wish
from pinstripe.placement.words import counted

__all__ = ["describe_refusal"]


def describe_refusal(machine: Machine, search: Search, wish: Wish) -> str:
    """Say what was asked, what there is, and what can be had."""
    return f"cannot place {_asked(wish)}: {_available(machine, search, wish)}; {_possible(machine, search, wish)}"


def _asked(wish: Wish) -> str:
    instances = "instances" if wish.instances is None else counted(wish.instances, "instance")
    cores = "" if wish.cores is None else f" of {counted(wish.cores, 'core')}"
    if wish.sizes:
        sizes = Counter(wish.sizes).items()
        instances = " and ".join(f"{counted(count, 'instance')} of {counted(size, 'core')}" for size, count in sizes)
        cores = f" ({counted(sum(wish.sizes), 'core')} in all)"
    strategy = "" if wish.strategy in {"close", "scatter"} else f" with --strategy {wish.strategy}"
    smt = " with --smt all" if wish.smt == "all" else ""
    return instances + cores + strategy + smt


def _available(machine: Machine, search: Search, wish: Wish) -> str:
    kind = "" if wish.core_kind == "all" else f"{wish.core_kind} "
    total = counted(sum(group.size for group in search.groups), f"usable {kind}core")
    noun = "level-3 group" if wish.strategy == "l3" else "node"
    sizes = f" ({describe_sizes(search.groups, noun)})" if len(search.groups) > 1 else ""
    reserved = f" besides {wish.reserve} reserved" if wish.reserve else ""
    quota = f", and {describe_quota(machine)}" if machine.cpu_quota is not None else ""
    return f"there {'is' if total.startswith('1 ') else 'are'} {total}{sizes}{reserved}{quota}"


def _possible(machine: Machine, search: Search, wish: Wish) -> str:
    if wish.sizes:
        return "ask for fewer instances, or smaller ones"
    shapes = search.alternatives(wish.instances, wish.cores, thread_limit(machine))
    # With one thread a core something can always be had.
    return f"possible: {' or '.join(map(str, shapes))}" if shapes else "use --smt one"
