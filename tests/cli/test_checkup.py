"""What `pinstripe doctor --measure` adds."""

import json
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from pinstripe.cli import checkup
from pinstripe.diagnosis import Activity, Observations
from pinstripe.peak import Peak, PeakPrecision, ProbePlace
from pinstripe.testing.machines import c5_metal


def test_without_an_engine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an engine there is no noise floor, and a reason; peaks are those of one process on a node's cores."""
    places: list[tuple[int, ...]] = []

    async def measured(where: Sequence[ProbePlace], precision: PeakPrecision, isa: Collection[str]) -> Peak:
        assert isa == c5_metal().isa
        places.extend(place.cpus for place in where)
        return Peak(precision=precision, gflops=100.0 if precision == "float32" else None)

    activity = Activity(duration_s=3.0, foreign_cpus=0.5, steal_cpus=0.0)
    monkeypatch.setattr(checkup, "measure_peak", measured)
    monkeypatch.setattr(checkup, "watch", lambda _duration_s, _sleep: activity)
    seen, details = checkup.check_up(Observations(machine=c5_metal(), engines={"openvino": {"openvino": None}}))

    assert (seen.activity, seen.noise_percent) == (activity, None)
    assert seen.peaks == {"float32": 100.0, "bfloat16": None}
    assert (details["noise"], details["noise_reason"]) == (None, "no engine is installed")
    assert {len(cpus) for cpus in places} == {48}
    assert capsys.readouterr() == ("", "")


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C says that nothing was kept, and goes on to end the command."""

    def interrupted(_duration_s: float, _sleep: object) -> Activity:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkup, "watch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkup.check_up(Observations(machine=c5_metal()))
    assert capsys.readouterr().err == "stopped; nothing was kept, as doctor writes no records\n"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_this_machine(tmp_path: Path) -> None:
    """Here noise and peak are measured, and are findings."""
    pytest.importorskip("torch")
    command = [sys.executable, "-c", "from pinstripe.cli import main; main()", "doctor", "--measure", "--json"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=800)
    answer = json.loads(finished.stdout)

    assert answer["noise_reason"] is None
    assert answer["noise_percent"] == answer["noise"]["floor_percent"] > 0
    assert len(answer["noise"]["rates"]) == len(answer["noise"]["base_rates"]) == 6
    assert answer["peaks"]["float32"] > 1
    assert {"noise", "peak"} <= {finding["subject"] for finding in answer["findings"]}
