"""Every error pinstripe raises on purpose.

    PinstripeError
    ├── UsageError            what was asked makes no sense or cannot be had: change the request
    │   ├── MachineError      a machine description cannot be read
    │   ├── PlacementError    a placement wish cannot be met on this machine
    │   ├── ModelError        a model cannot be found, read or understood
    │   ├── EngineError       an engine is unknown, not installed, or cannot do what was asked
    │   ├── KnobError         a knob is unknown, or its value cannot be had
    │   ├── ConfigurationError  a configuration, workload, plan or record is not valid
    │   └── TextError         a text, or a file of texts, is not valid
    │       └── BadTextError  one of several texts, by its index
    └── ExecutionError        the request was fine, running it failed
        ├── StartError        a worker process could not be started as asked
        ├── WorkerError       a worker failed while it ran
        │   ├── WorkerDiedError   it exited
        │   └── WorkerHungError   it made no progress in its time
        ├── RequestError      a request of a load was not answered as it should be
        ├── ExpiredError      a request waited beyond its deadline
        ├── RecordError       a record could not be written or read back
        └── OutputError       a result could not be written

Only the command line turns these into exit codes (`UsageError` 2, `ExecutionError` 1), and only the HTTP layer
into statuses. A message says what happened, the value seen, and what to do next, on one line.
"""

__all__ = [
    "BadTextError",
    "ConfigurationError",
    "EngineError",
    "ExecutionError",
    "ExpiredError",
    "KnobError",
    "MachineError",
    "ModelError",
    "OutputError",
    "PinstripeError",
    "PlacementError",
    "RecordError",
    "RequestError",
    "StartError",
    "TextError",
    "UsageError",
    "WorkerDiedError",
    "WorkerError",
    "WorkerHungError",
]


class PinstripeError(Exception):
    """Root of everything pinstripe raises on purpose."""


class UsageError(PinstripeError):
    """What was asked makes no sense or cannot be had; the request has to change."""


class MachineError(UsageError):
    """A machine description cannot be read, such as a dump without a CPU in it."""


class PlacementError(UsageError):
    """A placement wish cannot be met on this machine; the message says what can."""


class ModelError(UsageError):
    """A model cannot be found, read or understood."""


class EngineError(UsageError):
    """An engine is unknown, not installed, or cannot do what was asked of it."""


class KnobError(UsageError):
    """A knob is unknown, or its value cannot be had on this machine or with this engine."""


class ConfigurationError(UsageError):
    """A configuration, workload or record does not have a valid form."""


class TextError(UsageError):
    """A text, or a line of a file of texts, is not valid; the message names it."""


class BadTextError(TextError):
    """One of several texts is not valid.

    Attributes:
        index: Its place among them, from 0.
        reason: What is wrong and what to do, without a subject, such as `gives no tokens; leave it out`.
    """

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"text {index} {reason}")
        self.index = index
        self.reason = reason


class ExecutionError(PinstripeError):
    """The request was fine, but running it failed."""


class StartError(ExecutionError):
    """A process could not be started on the cores, memory or settings that were asked for."""


class WorkerError(ExecutionError):
    """A worker failed while it ran."""


class ExpiredError(ExecutionError):
    """A request's deadline passed before it was its turn."""


class WorkerDiedError(WorkerError):
    """A worker's process exited while it still had work."""


class WorkerHungError(WorkerError):
    """A worker made no progress within its time and was stopped."""


class RequestError(ExecutionError):
    """A request of a load was not answered as it should be.

    Attributes:
        kind: How it failed, in words that many requests may share, such as `HTTP 503`.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class RecordError(ExecutionError):
    """A record could not be written, or a written one could not be read back."""


class OutputError(ExecutionError):
    """Results could not be written, such as on a full disk; what was written before is kept."""
