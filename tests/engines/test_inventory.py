"""Which engines are installed."""

import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from pinstripe.engines import engine, inventory
from pinstripe.engines.inventory import InstalledEngine, list_engines
from pinstripe.errors import EngineError, ExecutionError, PinstripeError
from pinstripe.testing.bare_python import make_bare_python


def _named(engines: tuple[InstalledEngine, ...]) -> dict[str, InstalledEngine]:
    return {one.name: one for one in engines}


def _script(path: Path, *lines: str) -> str:
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("name", "module"), [("torch-eager", "torch"), ("onnxruntime", "onnxruntime"), ("openvino", "openvino")]
)
def test_an_installed_library(name: str, module: str) -> None:
    """It is available, with the version and the place that the library itself gives."""
    library = pytest.importorskip(module)
    if name == "torch-eager":
        pytest.importorskip("transformers")
    found = _named(list_engines())[name]

    assert found.available
    assert found.why_not is None
    assert library.__version__.startswith(str(found.version))
    assert found.location == str(Path(library.__file__).parent)


def test_the_fake_is_not_offered() -> None:
    """All engines that run a network are listed by name, and no other."""
    names = [one.name for one in list_engines()]

    assert "fake" not in names
    assert names == sorted(names)
    assert {"onnxruntime", "openvino", "torch-eager", "tf-xla"} <= set(names)


def test_bfloat16_only_where_the_cpu_multiplies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine's precisions are cut to what this CPU can do."""
    monkeypatch.setattr(inventory, "read_isa", lambda: ("avx512f", "amx_bf16"))
    able = _named(list_engines())["openvino"].precisions
    monkeypatch.setattr(inventory, "read_isa", lambda: ("avx512f", "avx512_vnni"))
    unable = _named(list_engines())["openvino"].precisions

    assert set(able) - set(unable) == {"bfloat16"}
    assert "float32" in unable


def test_nothing_is_imported() -> None:
    """Looking takes no second: no library is imported for it."""
    code = "import sys; from pinstripe.engines.inventory import list_engines; list_engines(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not {"torch", "transformers", "onnxruntime", "openvino", "tensorflow", "keras_hub"} & set(modules)


def test_another_environment_without_libraries(tmp_path: Path) -> None:
    """Each engine says what it lacks there, with that environment's own command."""
    python = str(make_bare_python(tmp_path / "bare"))
    found = list_engines({None: python})

    assert not any(one.available for one in found)
    assert all(one.version is None and one.location is None for one in found)
    assert _named(found)["tf-graph"].why_not == (
        f"tensorflow and keras-hub are not installed; run `{python} -m pip install 'pinstripe[tensorflow]'`"
    )


def test_one_engine_in_another_environment(tmp_path: Path) -> None:
    """Libraries are seen there by their files, even under another distribution's name; others are looked for here."""
    python = make_bare_python(tmp_path / "bare")
    site = next((tmp_path / "bare").glob("lib/python3*/site-packages"))
    for module, distribution in (("tensorflow", "tensorflow_cpu"), ("keras_hub", "keras_hub")):
        (site / module).mkdir()
        (site / module / "__init__.py").write_text("raise ImportError('this is not to be imported')\n")
        info = site / f"{distribution}-9.8.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 9.8\n")
        (info / "top_level.txt").write_text(f"{module}\n")
    there, here = _named(list_engines({"tf-graph": str(python)})), _named(list_engines())

    assert there["tf-graph"].available
    assert there["tf-graph"].version == "9.8"
    assert there["tf-graph"].location == str(site / "tensorflow")
    assert {**there, "tf-graph": None} == {**here, "tf-graph": None}


def test_an_environment_without_pinstripe(tmp_path: Path) -> None:
    """It is said, with the command that installs it."""
    python = str(make_bare_python(tmp_path / "bare", with_pinstripe=False))
    with pytest.raises(EngineError, match=f"{python} cannot run pinstripe: it has no pinstripe; run `{python} -m pip"):
        list_engines({None: python})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("echo '[]'",), "has a pinstripe without engine onnxruntime"),
        (("echo hello",), "is not understood"),
        (("echo '[{\"name\": 1}]'",), "is not understood"),
        (("echo first >&2", "echo it is broken >&2", "exit 3"), "failed to list its engines: it is broken"),
        (("exit 3",), "did not behave as a Python interpreter; name one with --python"),
        (("exec yes",), "it wrote more than 1 MiB"),
        (("echo 'Unknown option: -P' >&2", "exit 2"), "older than Python 3.11"),
    ],
    ids=["other-version", "words", "other-form", "error", "silent-error", "endless", "old-python"],
)
def test_what_answers_otherwise_is_refused(lines: tuple[str, ...], message: str, tmp_path: Path) -> None:
    """A program that is no such Python is an error of one line."""
    with pytest.raises(PinstripeError, match=message) as caught:
        list_engines({None: _script(tmp_path / "python", *lines)})
    assert "\n" not in str(caught.value)


def test_no_answer_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that hangs is given up, with whatever it has started."""
    monkeypatch.setattr(inventory, "_LIMIT_S", 0.5)
    with pytest.raises(ExecutionError, match="did not say what it has: not done after"):
        list_engines({None: _script(tmp_path / "python", "sleep 60 &", f"echo $! > {tmp_path}/pid", "wait")})
    status = Path("/proc", (tmp_path / "pid").read_text().strip(), "status")
    deadline = time.monotonic() + 5
    while status.exists() and "\nState:\tZ" not in status.read_text():
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.02)


def test_every_engine_names_an_extra() -> None:
    """The command that a missing engine is told to run installs the distributions that it names."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for one in list_engines():
        kind = engine(one.name)
        named = {re.split("[^a-z0-9-]", line)[0] for line in project["optional-dependencies"][kind.extra]}
        assert set(kind.distributions) <= named, one.name
