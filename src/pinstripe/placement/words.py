"""Numbers and CPUs in sentences."""

from collections.abc import Collection

from pinstripe.machine import format_cpu_list

__all__ = ["counted", "named_cpus"]


def counted(number: float, noun: str) -> str:
    """Put a number of things in words, such as `1 core` or `3 cores`."""
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def named_cpus(cpus: Collection[int]) -> str:
    """Name CPUs, such as `CPU 3` or `CPUs 0-3,8`; at least one."""
    return f"CPU{'s' if len(cpus) > 1 else ''} {format_cpu_list(cpus)}"
