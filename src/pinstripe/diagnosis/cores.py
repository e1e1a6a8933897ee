"""The cores themselves: siblings, kinds, instruction sets, whether they are real."""

from collections.abc import Sequence
from typing import Final

from pinstripe.diagnosis.finding import Finding, Severity
from pinstripe.diagnosis.observations import Observations
from pinstripe.machine import Core, Machine, format_cpu_list
from pinstripe.placement.cores import cut_to
from pinstripe.placement.quota import thread_limit
from pinstripe.placement.words import counted, named_cpus

__all__ = ["hybrid", "instruction_sets", "offline", "smt", "virtual_machine"]

# Names of flags in /proc/cpuinfo: arch/x86/include/asm/cpufeatures.h, Documentation/arch/arm64/elf_hwcaps.rst.
_X86: Final = {
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx_vnni": "VNNI",
    "avx512_vnni": "VNNI",
    "avx512_bf16": "bf16",
    "avx512_fp16": "fp16",
    "amx_int8": "AMX int8",
    "amx_bf16": "AMX bf16",
    "amx_fp16": "AMX fp16",
}
_ARM: Final = {"asimd": "NEON", "asimddp": "dot products", "sve": "SVE", "sve2": "SVE2", "i8mm": "i8mm", "bf16": "bf16"}


def smt(seen: Observations) -> Finding | None:
    """Do we have several CPUs of one core?"""
    machine = seen.machine
    cores = cut_to(machine.cores, machine.allowed)
    several = [core for core in cores if len(core.cpus) > 1]
    if not several:
        return None
    return Finding(
        subject="smt",
        severity="warning",
        title=f"Only {counted(len(cores), 'core')} behind {len(machine.allowed)} CPUs (SMT, hyper-threading)",
        seen=f"{counted(len(several), 'core')} with {max(len(core.cpus) for core in several)} CPUs",
        cost="One thread keeps a core's matrix units busy; a second one on the sibling CPU only takes turns with it. "
        "Thread pools that count CPUs start one each, and unpinned threads meet on one core while others idle.",
        remedy=f"one thread a core, pinned: `pinstripe launch -- COMMAND`; by hand `{_pinned(machine, cores)} COMMAND`",
        certainty="likely",
    )


def hybrid(seen: Observations) -> Finding | None:
    """Do we have cores of two kinds?"""
    cores = cut_to(seen.machine.cores, seen.machine.allowed)
    performance = [core for core in cores if core.kind == "performance"]
    efficiency = [core for core in cores if core.kind == "efficiency"]
    if not performance or not efficiency:
        return None
    return Finding(
        subject="hybrid",
        severity="warning",
        title=f"{counted(len(performance), 'fast core')} and {counted(len(efficiency), 'slow one')}",
        seen=f"performance {named_cpus([cpu for core in performance for cpu in core.cpus])}; "
        f"efficiency {named_cpus([cpu for core in efficiency for cpu in core.cpus])}",
        cost="Frameworks give each thread an equal share of the work, so that the fast cores wait for the slow ones.",
        remedy="fast cores alone, as pinstripe does unless --core-kind says otherwise: `pinstripe launch -- COMMAND`; "
        f"by hand `{_pinned(seen.machine, cores)} COMMAND`",
        certainty="likely",
    )


def offline(seen: Observations) -> Finding | None:
    """Are CPUs switched off?"""
    if not seen.offline:
        return None
    cpus = named_cpus(seen.offline)
    if seen.machine.smt in {"off", "forceoff"}:
        return Finding(
            subject="offline",
            severity="good",
            title="SMT is switched off: one CPU a core, as models want it",
            seen=f"{cpus} offline",
            certainty="likely",
        )
    return Finding(
        subject="offline",
        severity="note",
        title=f"{counted(len(seen.offline), 'CPU')} switched off",
        seen=f"{cpus} present, but offline",
        cost="Nothing can run there.",
        remedy=f"`echo 1 | sudo tee /sys/devices/system/cpu/cpu{seen.offline[0]}/online`, and so on for each",
        certainty="certain",
    )


def instruction_sets(seen: Observations) -> Finding | None:
    """Which vector and matrix instructions are there? Known for x86 and Arm."""
    flags = set(seen.machine.isa)
    if "sse2" in flags:
        return _x86(flags)
    if "asimd" in flags:
        return _arm(flags)
    if "neon" in flags or "vfpv3" in flags:
        return _verdict(
            "problem", "A 32-bit Arm processor", ["NEON"] if "neon" in flags else [], "No engine runs here."
        )
    return None


def virtual_machine(seen: Observations) -> Finding | None:
    """Is this a virtual machine that shows CPUs without siblings? x86 alone tells."""
    machine = seen.machine
    if "hypervisor" not in machine.isa:
        return None
    hidden = all(len(core.cpus) == 1 for core in machine.cores)
    return Finding(
        subject="virtual-machine",
        severity="note",
        title="A virtual machine: its cores may be half cores" if hidden else "A virtual machine",
        seen="the CPU's hypervisor flag" + (", and no siblings" if hidden else ""),
        cost="Most clouds sell hyper-threads as CPUs, and what the guest sees of cores, caches and nodes can be made "
        "up."
        if hidden
        else "What the guest sees of cores, caches and nodes can be made up, and the host can take time away (steal).",
        remedy="ask the provider for whole cores, and measure: "
        "`pinstripe bench MODEL --instances 1,per-core --scenario offline`",
        certainty="possible",
    )


def _pinned(machine: Machine, cores: Sequence[Core]) -> str:
    """Return how to start a process by hand on cores that go well together: of one node and kind, within the quota."""
    chosen = [core for core in cores if core.kind == "performance"] or cores
    chosen = [core for core in chosen if core.node == chosen[0].node]
    first = [core.cpus[0] for core in chosen][: int(min(len(chosen), thread_limit(machine)))]
    return f"OMP_NUM_THREADS={len(first)} taskset -c {format_cpu_list(first)}"


def _x86(flags: set[str]) -> Finding:
    names = _named(_X86, flags)
    if "avx2" not in flags:
        cost = "Models run several times slower than on a CPU of the last ten years."
        guest = ", or `host` as the guest's CPU model: the host may have it" if "hypervisor" in flags else ""
        return _verdict("problem", "The CPU has no AVX2", names, cost, f"another machine{guest}")
    if "VNNI" not in names:
        return _verdict(
            "note", "No instructions for int8 (VNNI)", names, "int8 models gain little here; float32 is fine."
        )
    if "avx512f" not in flags:
        return _verdict("good", "Vector instructions for float32 and int8", names)
    return _verdict("good", "Wide vectors" + (", and matrix units (AMX)" if "amx_tile" in flags else ""), names)


def _arm(flags: set[str]) -> Finding:
    names = _named(_ARM, flags)
    missing = [name for flag, name in (("bf16", "bf16"), ("i8mm", "int8 matrices")) if flag not in flags]
    if missing:
        cost = "Such models gain little here; float32 is fine."
        return _verdict("note", f"No instructions for {' or '.join(missing)}", names, cost)
    return _verdict("good", "Vector instructions for float32, bf16 and int8", names)


def _named(names: dict[str, str], flags: set[str]) -> list[str]:
    return list(dict.fromkeys(name for flag, name in names.items() if flag in flags))


def _verdict(severity: Severity, title: str, names: list[str], cost: str = "", remedy: str | None = None) -> Finding:
    return Finding(
        subject="instruction-sets",
        severity=severity,
        title=title,
        seen=", ".join(names) or "none of note",
        cost=cost,
        remedy=remedy,
        certainty="certain",
    )
