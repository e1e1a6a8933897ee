"""How long compute threads that have nothing to do keep their CPU."""

from typing import ClassVar, Final

from pinstripe.engines import Engine
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen, Setting
from pinstripe.knobs.openmp import expected_runtime
from pinstripe.knobs.values import WholeNumbers, takes
from pinstripe.runtime import NEVER_SLEEPS_MS, WATCHED_MS, OpenmpObservation

__all__ = ["Spin"]

_INFINITE: Final = "infinite"
_MOST_MS: Final = 10_000
_AT_ONCE_MS: Final = 0.5
"""Between what a thread needs to fall asleep (below 0.1 ms) and GNU's default of 300000 rounds (0.6 ms and more)."""
_ALLOWED: Final = "session.intra_op.allow_spinning"
_DURATION: Final = "session.intra_op.spin_duration_us"


class Spin(WholeNumbers):
    """Spinning before sleep: work that comes soon starts at once, but whoever shares the CPU has less of it.

    GNU's OpenMP runtime counts rounds, of which OMP_WAIT_POLICY means none or endlessly many (libgomp manual,
    "GOMP_SPINCOUNT"); Intel's and LLVM's take milliseconds (KMP_BLOCKTIME), ONNX Runtime microseconds.
    """

    name: ClassVar[str] = "spin"
    summary: ClassVar[str] = "how long idle compute threads spin before they sleep"
    accepts: ClassVar[str] = f"0 to {_MOST_MS} (milliseconds), or {_INFINITE}"
    default: ClassVar[str] = AUTO
    least: ClassVar[int] = 0
    most: ClassVar[int] = _MOST_MS
    worth_a_try: ClassVar[tuple[str, ...]] = ("0", "1", "20", "200", _INFINITE)
    """200 is what Intel's and LLVM's runtimes do by default."""

    def is_value(self, text: str) -> bool:
        """Return whether it is `infinite` or a number of milliseconds in range."""
        return text == _INFINITE or super().is_value(text)

    def stranger(self, engine: Engine) -> str | None:
        """Concern engines that compute with OpenMP, and those with an option for it."""
        if engine.threading == "openmp" or takes(engine, self.name):
            return None
        if engine.threading == "none":
            return "has no compute threads"
        # oneTBB: a task arena's `leave_policy` in C++; TensorFlow: an experimental field of its internal ConfigProto.
        pool = "TBB" if engine.threading == "tbb" else "a thread pool of its own"
        return f"computes with {pool} and offers no setting for how long idle threads spin"

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse what the library cannot count, and instances in which no thread ever waits for work."""
        if (context.threads if context.cpus is None else len(context.cpus)) == 1:
            return "an instance of one thread has none that waits for work; leave it out or take more cores"
        if context.engine is None:
            return None
        if takes(context.engine, self.name):
            return "onnxruntime takes a time; use a long one" if value == _INFINITE else None
        if value not in {"0", _INFINITE} and expected_runtime(context) == "gnu":
            return (
                f"GNU's OpenMP runtime counts rounds, not time; use 0 or {_INFINITE}, or openmp=intel or llvm with it"
            )
        return None

    def setting(self, value: str, context: Context) -> Setting:
        """Set the variable or option that the library listens to, and remove those that would override it."""
        if context.engine is not None and takes(context.engine, self.name):
            return Setting(options={self.name: int(value)})
        if expected_runtime(context) == "gnu":
            policy = "passive" if value == "0" else "active"
            return Setting(environment={"OMP_WAIT_POLICY": policy, "GOMP_SPINCOUNT": None})
        return Setting(environment={"KMP_BLOCKTIME": value, "KMP_LIBRARY": None, "OMP_WAIT_POLICY": None})

    def effective(self, seen: Seen) -> Effective:
        """Return what the library says, or how long its threads were seen awake where it cannot be asked."""
        if takes(seen.engine, self.name):
            return _of_session(seen.report.settings)
        found = seen.observation.openmp
        if found is None:
            why = seen.observation.unread.get("openmp", "no OpenMP runtime is loaded")
            return Effective("unknown", f"how long idle threads spin cannot be told: {why}")
        return _of_runtime(found)


def _of_session(settings: dict[str, str]) -> Effective:
    if settings.get(_ALLOWED) == "0":
        return Effective("0", f"{_ALLOWED} is 0")
    microseconds = settings.get(_DURATION)
    if microseconds is None:
        return Effective("the default of onnxruntime", f"{_DURATION} is not set")
    return Effective(f"{int(microseconds) / 1000:g}", f"{_DURATION} is {microseconds}")


def _of_runtime(found: OpenmpObservation) -> Effective:
    library = found.path.rpartition("/")[2]
    if found.blocktime_ms is not None:
        never = found.blocktime_ms == NEVER_SLEEPS_MS
        value = _INFINITE if never else str(found.blocktime_ms)
        return Effective(value, f"{library} says {value}{'' if never else ' ms'}")
    if found.awake_ms is None:
        one = len(found.team) == 1
        why = "its team is one thread, which never waits" if one else "the kernel does not show the state of threads"
        return Effective("unknown", f"{library} cannot be asked, and {why}")
    if found.awake_ms >= WATCHED_MS:
        return Effective(_INFINITE, f"idle threads of {library} spun for all of {WATCHED_MS} ms")
    said = f"idle threads of {library} slept after {found.awake_ms:.1f} ms of CPU time"
    return Effective("0" if found.awake_ms < _AT_ONCE_MS else f"about {found.awake_ms:.1f} ms", said)
