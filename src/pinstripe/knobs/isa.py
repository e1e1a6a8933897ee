"""The newest instructions that kernels may use."""

import re
from typing import ClassVar, Final, NamedTuple

from pinstripe.engines import Engine
from pinstripe.engines.instruction_sets import HEADER_ONLY
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen, Setting
from pinstripe.knobs.values import OfWords, on_torch

__all__ = ["Isa"]


class _Level(NamedTuple):
    """A limit, in the words of each library.

    Attributes:
        flags: What a CPU needs for it, beside what the level before needs; as the kernel names them.
        onednn: Value of `ONEDNN_MAX_CPU_ISA`. oneDNN ignores one that it does not know.
        aten: Value of `ATEN_CPU_CAPABILITY`, for torch's own kernels and for inductor's.
        mkl: Value of `MKL_ENABLE_INSTRUCTIONS`, which counts on Intel's processors alone.
        march: The C++ compiler's `-march`, for what inductor compiles.
        heard: Pattern of what oneDNN and MKL say if they use this, and nothing newer.
    """

    flags: tuple[str, ...]
    onednn: str
    aten: str
    mkl: str
    march: str
    heard: str


# Oldest first. Words of the variables: oneDNN's "CPU Dispatcher Control", MKL's "Instruction Set Specific Dispatching".
_LEVELS: Final = {
    "sse41": _Level(("sse4_1",), "SSE41", "default", "SSE4_2", "x86-64-v2", r"SSE4\.[12]"),
    "avx2": _Level(("avx2", "fma"), "AVX2", "avx2", "AVX2", "x86-64-v3", r"AVX2(?!.*DL Boost)"),
    "avx512": _Level(
        ("avx512f", "avx512bw", "avx512vl", "avx512dq"),
        "AVX512_CORE",
        "avx512",
        "AVX512",
        "x86-64-v4",
        r"AVX-512(?!.*(DL Boost|AMX))",
    ),
    "avx512-vnni": _Level(
        ("avx512_vnni",),
        "AVX512_CORE_VNNI",
        "avx512",
        "AVX512_E1",
        "x86-64-v4",
        r"AVX-512.*DL Boost(?!.*(bfloat16|AMX))",
    ),
    "avx512-bf16": _Level(
        ("avx512_bf16",),
        "AVX512_CORE_BF16",
        "avx512",
        "AVX512_E3",
        "x86-64-v4",
        r"AVX-512(?! with float16).*DL Boost.*bfloat16(?!.*AMX)",
    ),
    "amx": _Level(
        ("amx_tile", "amx_int8", "amx_bf16"),
        "AVX512_CORE_AMX",
        "avx512",
        "AVX512_E4",
        "x86-64-v4",
        r"AMX(?!.*\bfloat16)",
    ),
}
_X86: Final = "sse2"
_WITH_BFLOAT16: Final = ("avx512-bf16", "amx")
_OVERRIDING: Final = ("DNNL_MAX_CPU_ISA", "DNNL_VERBOSE", "ONEDNN_VERBOSE", "MKL_VERBOSE")
"""Older names of oneDNN's variables; and those by which oneDNN and MKL introduce themselves when nobody listens yet."""
_VECTOR_ISA: Final = {"sse41": "INVALID_VEC_ISA", "avx2": "avx2"}
"""What inductor says that it compiled for, without AVX-512."""


class Isa(OfWords):
    """A limit for oneDNN, and in torch for MKL, torch's own kernels and inductor's.

    What they say themselves shows it. Kernels of OpenVINO and ONNX Runtime have no limit: most of their float32
    products are computed by MLAS, which takes what the CPU has. XLA takes one, and does not say which it follows.
    """

    name: ClassVar[str] = "isa"
    summary: ClassVar[str] = "newest instructions that kernels may use"
    accepts: ClassVar[str] = "sse41, avx2, avx512, avx512-vnni, avx512-bf16 or amx (x86)"
    default: ClassVar[str] = AUTO
    words: ClassVar[tuple[str, ...]] = tuple(_LEVELS)

    def stranger(self, engine: Engine) -> str | None:
        """Concern engines whose kernels can be limited, and say how they are."""
        if on_torch(engine) or engine.name in {"tf-eager", "tf-graph"}:
            return None
        if engine.name == "tf-xla":
            return "compiles kernels of its own by XLA, which does not say what it compiled for"
        if engine.threading == "none":
            return "computes nothing"
        return "has kernels (MLAS) that take no limit"

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse what the CPU lacks, and processors on which MKL ignores its limit."""
        machine = context.host.machine
        if _X86 not in machine.isa:
            return "its values are x86's, and this CPU is none; leave it at auto"
        best = None
        for name, level in _LEVELS.items():
            if lacking := [flag for flag in level.flags if flag not in machine.isa]:
                return f"this CPU lacks {lacking[0]}; use {best or AUTO}"
            if name == value:
                break
            best = name
        if context.precision == "bfloat16" and value not in _WITH_BFLOAT16:
            return "it leaves no instructions for bfloat16; use avx512-bf16 or amx, or another precision"
        if context.engine is not None and on_torch(context.engine) and "AMD" in (machine.model_name or ""):
            return "the MKL inside torch takes its limit on Intel's processors alone; leave it at auto"
        return None

    def setting(self, value: str, context: Context) -> Setting:
        """Set each library's variable."""
        level = _LEVELS[value]
        if context.engine is not None and not on_torch(context.engine):
            onednn = {"ONEDNN_MAX_CPU_ISA": level.onednn, "ONEDNN_VERBOSE": HEADER_ONLY}
            return Setting(environment={**dict.fromkeys(_OVERRIDING), **onednn})
        return Setting(
            environment={
                **dict.fromkeys(_OVERRIDING),
                "ONEDNN_MAX_CPU_ISA": level.onednn,
                "ATEN_CPU_CAPABILITY": level.aten,
                "MKL_ENABLE_INSTRUCTIONS": level.mkl,
                "TORCHINDUCTOR_CPP_MARCH": level.march,
            }
        )

    def effective(self, seen: Seen) -> Effective:
        """Return the limit that all libraries say they keep, `mixed` where they differ."""
        settings = seen.report.settings
        said = {name: settings[key] for name, key in _SAID.items() if settings.get(key)}
        silent = [name for name, key in _SAID.items() if settings.get(key) == ""]
        if "oneDNN" not in said or silent:
            return Effective("unknown", f"{(silent or ['oneDNN'])[0]} does not say which instructions it uses")
        limits = {name: _limit(name, words) for name, words in said.items()}
        limit = _recognized(said["oneDNN"])
        why = ", ".join(f"{name} uses {words}" for name, words in said.items())
        if limit is None:
            return Effective(said["oneDNN"], why)
        return Effective(limit if all(limit in found for found in limits.values()) else "mixed", why)


_SAID: Final = {
    "oneDNN": "onednn_isa",
    "torch": "cpu_capability",
    "MKL": "mkl_isa",
    "inductor": "vector_isa",
}
"""Settings of a report that tell each library's instructions."""


def _limit(library: str, words: str) -> frozenset[str]:
    """Return the limits that a library's words go with."""
    if library == "torch":
        return frozenset(name for name, level in _LEVELS.items() if level.aten == words.lower())
    if library == "inductor":
        return frozenset(name for name in _LEVELS if words.startswith(_VECTOR_ISA.get(name, "avx512")))
    found = _recognized(words)
    return frozenset() if found is None else frozenset({found})


def _recognized(words: str) -> str | None:
    return next((name for name, level in _LEVELS.items() if re.search(level.heard, words)), None)
