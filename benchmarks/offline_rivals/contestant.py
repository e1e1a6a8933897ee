"""Those who take part, seen from the benchmark."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import msgspec

__all__ = ["Contestant", "EmbedCommand", "LongLived", "Turn"]

_ENVIRONMENT = {"HF_HUB_OFFLINE": "1"}
_SCRIPTS_PARENT = Path(__file__).parents[1]


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over the whole corpus.

    Attributes:
        elapsed_ns: How long it took.
        own_texts_per_s: The rate that the program itself reports; None if it reports none.
    """

    elapsed_ns: int
    own_texts_per_s: float | None = None


class Contestant(Protocol):
    """One way to encode a corpus."""

    name: str

    def start(self) -> dict[str, Any]:
        """Get ready; returns what it tells of itself."""
        ...

    def take_turn(self) -> Turn:
        """Encode the whole corpus once."""
        ...

    def save(self, file: Path) -> None:
        """Write the vectors of the last turn as .npy."""
        ...

    def stop(self) -> None:
        """End it. Idempotent."""
        ...


class LongLived:
    """A child that loads once, and sleeps between its turns; see `turns.py` for what is said."""

    def __init__(self, name: str, python: Path, module: str, arguments: list[str], log: Path) -> None:
        """Prepare to start a module of this package with a Python; its standard error goes to the file `log`."""
        self.name = name
        self._command = [str(python), "-m", f"{__package__}.{module}", *arguments]
        self._log = log
        self._child: subprocess.Popen[str] | None = None

    def start(self) -> dict[str, Any]:
        """Wait until it has loaded and warmed up."""
        with self._log.open("w") as errors:
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | _ENVIRONMENT,
                cwd=_SCRIPTS_PARENT,
                text=True,
            )
        return self._read()

    def take_turn(self) -> Turn:
        """Ask for a turn and wait for it; the child has measured it."""
        return Turn(elapsed_ns=self._ask("encode")["elapsed_ns"])

    def save(self, file: Path) -> None:
        """Ask for the vectors and wait for them."""
        self._ask(f"save {file}")

    def stop(self) -> None:
        """Close its input, which ends it."""
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()
            try:
                self._child.wait(30)
            except subprocess.TimeoutExpired:
                self._child.kill()

    def _ask(self, line: str) -> dict[str, Any]:
        if self._child is None or self._child.stdin is None:
            raise RuntimeError(f"{self.name} was not started")
        print(line, file=self._child.stdin, flush=True)
        return self._read()

    def _read(self) -> dict[str, Any]:
        if self._child is None or self._child.stdout is None:
            raise RuntimeError(f"{self.name} was not started")
        line = self._child.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with {self._child.wait()}; see {self._log}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class EmbedCommand:
    """`pinstripe embed` from the shell: a new process each turn, start-up and writing included."""

    def __init__(self, name: str, model: str, corpus: Path, output: Path, log: Path) -> None:
        """Prepare to run it on `corpus`; its standard error goes to the file `log`."""
        self.name = name
        self._command = [
            *(str(Path(sys.executable).with_name("pinstripe")), "embed", model, str(corpus)),
            *("--output", str(output), "--force", "--json"),
        ]
        self._output = output
        self._log = log

    def start(self) -> dict[str, Any]:
        """Run it once, so that the model's file is made and everything has been read from disk."""
        self.take_turn()
        return {"command": " ".join(["pinstripe", *self._command[1:]])}

    def take_turn(self) -> Turn:
        """Run the command."""
        began_ns = time.perf_counter_ns()
        with self._log.open("w") as errors:
            done = subprocess.run(
                self._command, stdout=subprocess.PIPE, stderr=errors, env=os.environ | _ENVIRONMENT, check=False
            )
        elapsed_ns = time.perf_counter_ns() - began_ns
        if done.returncode:
            raise SystemExit(f"{self.name} ended with {done.returncode}; see {self._log}")
        return Turn(elapsed_ns=elapsed_ns, own_texts_per_s=json.loads(done.stdout)["texts_per_s"])

    def save(self, file: Path) -> None:
        """Keep what the command wrote."""
        self._output.replace(file)

    def stop(self) -> None:
        """Do nothing: it has ended by itself."""
