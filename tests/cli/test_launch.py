"""`pinstripe launch`, around programs of all kinds."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A shell that starts tests in the background has them, and so what they start, ignore Ctrl-C.
HEAR_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
LAUNCH = (sys.executable, "-c", HEAR_CTRL_C + "from pinstripe.cli import main; main()", "launch")
ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
CPUS = sorted(os.sched_getaffinity(0))
TWO = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
ONE = ("--bind", str(CPUS[0]))


@TWO
def test_each_runs_on_its_own_cores(pinstripe: Run) -> None:
    """Two Python programs see different CPUs, as many threads, and who they are; words after theirs are theirs."""
    code = (
        "import os, sys; print(os.environ['PINSTRIPE_INSTANCE'], os.environ['PINSTRIPE_INSTANCES'], "
        "os.environ['OMP_NUM_THREADS'], *sorted(os.sched_getaffinity(0)), *sys.argv[1:])"
    )
    words = ("launch", "--instances", "2", "--cores", "1", "--", sys.executable, "-c", code, "--json", "--", "-h")
    finished = pinstripe(*words)
    assert finished.returncode == 0, finished.stderr
    lines = sorted(finished.stdout.splitlines())
    found = [re.fullmatch(r"\[(\d)\] (\d) 2 1 (\d+) --json -- -h", line) for line in lines]
    assert [each and each[1] == each[2] for each in found] == [True, True]
    assert len({each and each[3] for each in found}) == 2
    assert re.search(r"instance 0: exit code 0 after .* s \(CPU \d+[,)]", finished.stderr)


def test_a_shell_pipeline(pinstripe: Run) -> None:
    """Started as it is written, also without `--` before it."""
    finished = pinstripe("launch", *ONE, "sh", "-c", "printf 'a\\nb\\na\\n' | grep a | wc -l")
    assert (finished.returncode, finished.stdout) == (0, "[0] 2\n")


def test_the_exit_code_is_passed_on(pinstripe: Run) -> None:
    """And the summary as JSON is the last line of standard error."""
    finished = pinstripe("launch", *ONE, "--json", "--", "sh", "-c", "echo words >&2; exit 42")
    assert (finished.returncode, finished.stdout) == (42, "")
    summary = json.loads(finished.stderr.splitlines()[-1])
    assert summary["exit_code"] == 42
    (member,) = summary["members"]
    assert (member["outcome"], member["status"], member["cpus"]) == ("failed", 42, [CPUS[0]])
    assert member["memory"]["requested"] == "auto"


def test_a_dry_run_starts_nothing(pinstripe: Run, tmp_path: Path) -> None:
    """It prints where, and a line that a shell takes; and the same as JSON."""
    command = ("--", "touch", str(tmp_path / "a trace"))
    shown = pinstripe("launch", *ONE, "--dry-run", *command)
    assert shown.stdout.startswith(f"instance 0: CPU {CPUS[0]}, memory auto -> ")
    plan = json.loads(pinstripe("launch", *ONE, "--dry-run", "--json", *command).stdout)
    (instance,) = plan["instances"]
    assert instance["argv"] == ["touch", str(tmp_path / "a trace")]
    assert instance["cpus"] == [CPUS[0]]
    assert instance["environment"]["PINSTRIPE_CPUS"] == str(CPUS[0])
    assert instance["memory"].keys() == {"requested", "effective", "nodes", "why"}
    assert not (tmp_path / "a trace").exists()
    subprocess.run(["/bin/sh", "-c", shown.stdout.splitlines()[1]], check=True)
    assert (tmp_path / "a trace").exists()


def test_a_file_each(pinstripe: Run, tmp_path: Path) -> None:
    """Output and errors as they came, without prefix; files that exist are not overwritten."""
    words = ("launch", *ONE, "--output-dir", str(tmp_path / "logs"), "--", "sh", "-c", "echo out; printf err >&2")
    finished = pinstripe(*words)
    assert (finished.returncode, finished.stdout) == (0, "")
    assert (tmp_path / "logs" / "instance-0.log").read_text() == "out\nerr"
    again = pinstripe(*words)
    assert again.returncode == 2
    assert "instance-0.log (File exists)" in again.stderr


def test_output_as_it_comes(pinstripe: Run) -> None:
    """Not a byte is added."""
    finished = pinstripe("launch", *ONE, "--no-prefix", "--quiet", "--", "printf", "50%%\\t100%%")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "50%\t100%", "")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--", "no-such-program"), 1, "cannot execute 'no-such-program' (No such file or directory)"),
        (("--", b"a\xff"), 1, "cannot execute 'a\\xff' (No such file or directory)"),
        (("--", "zcat x | wc -l"), 1, "a line for a shell needs sh -c before it"),
        (("--", "/proc/version"), 1, "cannot execute '/proc/version' (Permission denied)"),
        ((), 2, "Missing argument"),
        (("--memory", "far", "--", "true"), 2, "--memory 'far' is not known; use one of auto, preferred"),
        (("--instances", "0", "--", "true"), 2, "--instances is 0"),
        (("--output-dir", "/proc/none", "--", "true"), 2, "cannot create /proc/none"),
    ],
)
def test_what_cannot_be_done_is_one_line(pinstripe: Run, words: tuple[str | bytes, ...], code: int, said: str) -> None:
    """With what to do next."""
    finished = pinstripe("launch", *words)
    assert finished.returncode == code
    assert said in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_replaced_variables_are_said(pinstripe: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the user has set is changed in silence."""
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    monkeypatch.setenv("KMP_AFFINITY", "none")
    finished = pinstripe("launch", *ONE, "--", "sh", "-c", "echo $OMP_NUM_THREADS ${KMP_AFFINITY-unset}")
    assert finished.stdout == "[0] 1 unset\n"
    assert "OMP_NUM_THREADS=77 is set here and replaced by 1" in finished.stderr
    assert "KMP_AFFINITY=none is set here and removed" in finished.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_stop_all_and_say_what_ran(number: signal.Signals, code: int) -> None:
    """Ctrl-C, SIGTERM and a closed terminal: programs end, the summary comes, the exit code tells."""
    with subprocess.Popen(
        [*LAUNCH, *ONE, "--", "sh", "-c", "echo $$; exec sleep 60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout
        assert parent.stderr
        pid = int(parent.stdout.readline().removeprefix("[0] "))
        parent.send_signal(number)
        assert parent.wait(20) == code
        assert "instance 0: stopped, killed by SIGTERM after" in parent.stderr.read()
    assert not Path(f"/proc/{pid}").exists()


def test_ctrl_c_on_a_terminal() -> None:
    """The key itself; prefixes are coloured there, as ECMA-48 has it."""
    command = [*LAUNCH, *ONE, "--", "sh", "-c", "echo ready; exec sleep 60"]
    with subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as terminal:
        assert terminal.stdin
        assert terminal.stdout
        assert terminal.stdout.readline() == b"\x1b[36m[0] \x1b[0mready\r\n"
        terminal.stdin.write(b"\x03")
        terminal.stdin.flush()
        assert b"stopped, killed by SIGTERM" in terminal.stdout.read()
        assert terminal.wait(20) == 130


def test_help_teaches_with_an_example(pinstripe: Run) -> None:
    """As for every command."""
    finished = pinstripe("launch", "--help")
    assert finished.returncode == 0
    assert "Example: pinstripe launch --instances 2 --cores 1 -- python" in finished.stdout


def test_a_word_that_is_not_text(pinstripe: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    r"""A byte that is not UTF-8 is `\xff` in JSON and in notes, and a shell's `$'...'` in what can be pasted."""
    monkeypatch.setenv("OMP_NUM_THREADS", os.fsdecode(b"7\xff"))
    command = (
        *ONE,
        "--dry-run",
        "--",
        "touch",
        str(tmp_path / "caf\u00e9"),
        str(tmp_path / os.fsdecode(b"it's \\ \xffa")),
    )
    (instance,) = json.loads(pinstripe("launch", *ONE, "--json", *command[2:]).stdout)["instances"]
    assert instance["argv"] == ["touch", str(tmp_path / "caf\u00e9"), str(tmp_path) + "/it's \\ \\xffa"]

    shown = pinstripe("launch", *command).stdout
    assert "note: OMP_NUM_THREADS=7\\xff is set here" in shown
    assert "-- env $'OMP_NUM_THREADS=7\\xff' CMD" in shown
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash to read it")
    subprocess.run([bash, "-c", shown.splitlines()[1]], check=True)
    names = sorted(os.fsencode(path.name) for path in tmp_path.iterdir())
    assert names == [b"caf\xc3\xa9", b"it's \\ \xffa"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"echo words\n", "(Exec format error): it is no program of this machine, nor does it begin with a #! line"),
        (b"", "(Exec format error): it is no program of this machine"),
        (b"#!/no/such [thing]\r\n", "the interpreter in its first line, '#!/no/such [thing]\\r', is not"),
        (b"#!/no/\xff\n", "the interpreter in its first line, '#!/no/\\xff', is not"),
    ],
)
def test_scripts_that_cannot_be_executed(
    pinstripe: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str
) -> None:
    """The message is about the line that is wrong or missing, and no empty log is left."""
    script = tmp_path / "the-script"
    script.write_bytes(content)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in (str(script), script.name):
        finished = pinstripe("launch", *ONE, "--output-dir", "logs", "--", name)

        assert finished.returncode == 1
        assert said in finished.stderr
        assert finished.stderr.count("\n") == 1
        assert list((tmp_path / "logs").iterdir()) == []


@TWO
def test_no_log_is_left_beside_one_that_exists(pinstripe: Run, tmp_path: Path) -> None:
    """What is refused leaves the directory as it was."""
    (tmp_path / "instance-1.log").write_text("mine")
    finished = pinstripe("launch", "--instances", "2", "--output-dir", str(tmp_path), "--", "echo", "words")
    assert finished.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["instance-1.log"]
    assert (tmp_path / "instance-1.log").read_text() == "mine"
