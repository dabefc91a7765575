"""`gangplan bench`: the suite, the runner and the report of GapBench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from gangplan.hybrid.bench.best_known import certified
from gangplan.hybrid.bench.library import read_library
from gangplan.hybrid.bench.rows import ONLINE
from gangplan.hybrid.bench.suite import SIZES, Instance, from_file, make, suite
from gangplan.instances import InstanceError, dump
from gangplan.instances.outlet import write_whole

from . import options
from .app import Group
from .options import option
from .output import Bar, emit_blocks, emit_either, table

bench = typer.Typer(cls=Group, help="Compare methods on instances with known bounds.", no_args_is_help=True)

_SUITE = "toy, small, medium, large or huge; partition, placement, schedule, online; or all"
SEE = "see `gangplan bench run --help`"
CHOICE = {name: option(str, f"only instances of this {name}", "") for name in ("objective", "size", "family")}
"""Which instances of a suite."""
Ledger = Annotated[
    str | None, typer.Option(help="best known values of your own  [default: FOLDER/ledger.jsonl]", metavar="FILE")
]
Folder = Annotated[str, typer.Option(help="of rows, plans, ledger and report", metavar="FOLDER")]
_LIMITS = "of a solve; several deadlines joined by commas"
_PLUGIN = "a solver of yours, or an installed one; may be repeated"
RUN = {
    "sample": option(int, "at most so many of each objective; 0 means all", 0, **options.whole_from(0, 100_000)),
    "file": option(list[str], "a problem of yours instead of the suite; may be repeated", metavar="FILE"),
    "methods": option(str, "joined by commas  [default: auto and three of each objective]", ""),
    "plugin": option(list[str], _PLUGIN, metavar="FILE.py:FUNCTION"),
    "time_limit": option(Any, _LIMITS, "0.5", metavar="SECONDS", parser=options.numbers),
    "seeds": option(int, "how many, of the methods", 1, **options.whole_from(1, 10_000)),
    "jobs": option(int, "solves at a time", 1, **options.whole_from(1, 100_000)),
    "workers": option(int, "threads of a solve", 1, **options.whole_from(1, 1024)),
    "engine": option(str, "joblib's: loky (processes here), ray or dask", "loky"),
    "memory": option(float, "that a solve may have", metavar="GIB"),
    "cpu": option(float, "processor seconds that a solve may have"),
}
"""How a suite is run."""


def ledger_in(folder: str, ledger: str | None) -> Path:
    """Return the ledger, by default that of a folder."""
    return Path(folder) / "ledger.jsonl" if ledger is None else Path(ledger)


def check_positive(**numbers: Any) -> None:
    """Refuse a number of an option, or of several, that is neither `None` nor positive and finite."""
    for field, values in numbers.items():
        for x in values if isinstance(values, tuple) else (values,):
            if x is not None and not (isfinite(x) and x > 0):
                raise InstanceError(field, f"{x!r} is not a positive number")


@bench.command(name="list")
@options.with_tables(chosen=CHOICE)
def list_(
    name: Annotated[str, typer.Option("--suite", help=SEE)] = "all",
    *,
    chosen: dict[str, Any],
    folder: Folder = "gapbench",
    ledger: Ledger = None,
    each: Annotated[bool, typer.Option("--each", help="a line an instance")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the instances, and what is known of them."""
    found = suite(name, **chosen, ledger=ledger_in(folder, ledger))
    blocks = [_counts(found), f"{len(found)} instances, {sum(x.proved for x in found)} optimal as a method claims"]
    if each:
        lines = [(x.id, _number(x.value), _number(x.bound), x.by, _number(x.seconds)) for x in found]
        blocks = [table(("instance", "best known", "bound", "by", "s"), lines)]
    emit_either(as_json, [asdict(x) for x in found], *blocks)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _counts(found: Sequence[Instance]) -> Any:
    """Return a table: of each objective and family how many are of each size, with optima claimed and certified."""
    records = read_library()
    groups: dict[tuple[str, str], list[Instance]] = {}
    for x in found:
        groups.setdefault((x.objective, x.family), []).append(x)
    lines = []
    for (objective, family), own in groups.items():
        sizes = [str(sum(x.size == size for x in own) or "") for size in SIZES]
        plans, proved = sum(x.value is not None for x in own), sum(x.proved for x in own)
        sure = sum(x.proved and certified(x, records.get(x.id)) for x in own)
        lines.append((objective, family, *sizes, str(plans), str(proved), str(sure)))
    return table(("objective", "family", *SIZES, "plans", "optima", "proved"), lines, left=2)


@bench.command()
def generate(
    instance: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="instances; none means the suite")
    ] = None,
    name: Annotated[str, typer.Option("--suite", help=SEE)] = "toy",
    folder: Folder = "gapbench",
) -> None:
    """Generate the problems of a suite in FOLDER/instances.

    They are, bit for bit, those of the manifest.
    """
    found = suite("all" if instance else name)
    chosen = [x for x in found if not instance or x.id in instance]
    if missing := set(instance or ()) - {x.id for x in chosen}:
        raise InstanceError("instance", f"there is no {min(missing)!r}; see gangplan bench list --each")
    if online := [x.id for x in chosen if x.objective == ONLINE]:
        if instance or name == ONLINE:
            raise InstanceError("instance", f"{online[0]!r} is online: it has no problem in a file, policies play it")
        chosen = [x for x in chosen if x.objective != ONLINE]
    place = Path(folder) / "instances"
    place.mkdir(parents=True, exist_ok=True)
    with Bar("generating", hidden=False) as bar:
        for i, x in enumerate(chosen):
            write_whole({place / f"{x.id}.json": f"{dump(make(x))}\n".encode()})
            bar((i + 1) / len(chosen))
    emit_blocks(f"{place}: {len(chosen)} problems, as in the manifest")


@bench.command()
@options.with_tables(chosen=CHOICE, given=RUN)
def run(
    name: Annotated[str, typer.Option("--suite", help=_SUITE)] = "toy",
    *,
    chosen: dict[str, Any],
    given: dict[str, Any],
    folder: Folder = "gapbench",
    ledger: Ledger = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="write the report too")] = True,
) -> None:
    """Run methods on a suite, a row each.

    What FOLDER has already is not run again, whatever ended the last run. Plans better than the best known are kept in
    FOLDER/plans, their verified values in the ledger.
    """
    from gangplan.hybrid.bench.run import run as run_all
    from gangplan.hybrid.bench.task import BenchSettings

    limits, memory, file, sample = (given.pop(x) for x in ("time_limit", "memory", "file", "sample"))
    deadlines = limits if isinstance(limits, tuple) else (limits,)
    check_positive(time_limit=deadlines, memory=memory, cpu=given["cpu"])
    settings = BenchSettings(
        Path(folder), tuple(x for x in given.pop("methods").split(",") if x), tuple(given.pop("plugin") or ()),
        deadlines, tuple(range(given.pop("seeds"))), memory=None if memory is None else memory * 2**30,
        ledger=ledger_in(folder, ledger), **given,
    )  # fmt: skip
    found = [from_file(path, chosen["objective"]) for path in file or ()]
    found = found or suite(name, **chosen, ledger=settings.ledger, sample=sample)
    with Bar(f"{len(found)} instances", hidden=False) as bar:
        rows = run_all(found, settings, bar)
    emit_blocks(f"{folder}: {len(rows)} rows of {len(found)} instances")
    if report:
        _report(folder, settings.ledger)


@bench.command()
def report(
    folder: Folder = "gapbench",
    ledger: Ledger = None,
    short: Annotated[str | None, typer.Option(help="write a short report in Markdown too", metavar="FILE")] = None,
) -> None:
    """Write FOLDER/report.md and FOLDER/report.html from the rows."""
    _report(folder, ledger_in(folder, ledger), short)


def _report(folder: str, ledger: Path | None, short: str | None = None) -> None:
    from .bench_report import write_report

    written = write_report(Path(folder), suite("all", ledger=ledger), short=None if short is None else Path(short))
    emit_blocks(f"{written[0]} and {written[1]}")
