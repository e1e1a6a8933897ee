"""All families of encoders against plain transformers, by every engine that runs them."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.engines.precision import has_bfloat16
from pinstripe.machine import read_isa
from pinstripe.models import Network
from pinstripe.testing.engine_conformance import make_batch
from pinstripe.testing.tiny_families import FAMILIES

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(
    real_engine: str, family: str, tiny: Callable[[str], Network], artefact: Callable[[str, Network], Artefact]
) -> None:
    """Hidden states of a padded batch, from one token to the longest, agree to 1e-3."""
    if real_engine.startswith("tf-"):
        pytest.skip("which families keras-hub computes is tested beside those engines")
    torch = pytest.importorskip("torch")
    network = tiny(f"{family}-embedding")
    batch = make_batch(network, 11, 1, 48, 7)
    reference = pytest.importorskip("transformers").AutoModel.from_pretrained(network.directory).eval()
    mask = np.array([[1] * length + [0] * (48 - length) for length in (11, 1, 48, 7)])
    with torch.inference_mode():
        output = reference(input_ids=torch.tensor(batch.ids, dtype=torch.int64), attention_mask=torch.tensor(mask))
    expected = output.last_hidden_state.numpy()[mask == 1]
    loaded = engine(real_engine).load(LoadRequest(network=network, artefact=artefact(real_engine, network), threads=1))
    np.testing.assert_allclose(loaded.forward(batch)[mask == 1], expected, rtol=0, atol=1e-3)
    assert expected.std() > 0.1  # so that 1e-3 says something


def _cells(text: str) -> dict[tuple[str, str], str]:
    """Return the cells of the first table in a Markdown text, by engine and family."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {(name, row[0]): cell for row in rows[2:] for name, cell in zip(rows[0][1:], row[1:], strict=True)}


def _fresh(families: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return the cells of these families, run now."""
    command: list[Any] = [sys.executable, "-W", "ignore", _ROOT / "benchmarks" / "families.py"]
    for name in ("onnxruntime", "openvino", "torch-eager", "torchscript"):
        command += ["--engine", name]
    for family in families:
        command += ["--family", family]
    return _cells(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_table_in_the_documentation() -> None:
    """A fresh run of the engines that are installed here gives the cells that docs/families.md has.

    Without torch-compile, which takes a quarter of an hour for all of them; test_every_family runs it in float32. The
    table is made where the CPU has bfloat16; elsewhere its other precisions are compared.
    """
    families = list(FAMILIES)
    with ThreadPoolExecutor() as both:  # each computes on one CPU
        fresh = dict(chain.from_iterable(table.items() for table in both.map(_fresh, (families[::2], families[1::2]))))
    written = _cells((_ROOT / "docs" / "families.md").read_text(encoding="utf-8"))
    if not has_bfloat16(read_isa()):
        written = {place: cell.replace("bfloat16, ", "").replace(", bfloat16", "") for place, cell in written.items()}
    assert fresh
    assert {place: written.get(place) for place in fresh} == fresh
