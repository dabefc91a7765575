"""Large problems by the portfolio and by each of its methods alone, with a clock of processor time.

``python -m benchmarks large`` appends the rows that large.csv lacks and writes the table into docs/hybrid.md.
All solves are in one process, which has loaded everything, by one thread, so other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import csv
import gc
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import gangplan
from gangplan.hybrid import portfolio
from gangplan.hybrid.portfolio import PROCESS, SHORT, can_run_here
from gangplan.hybrid.processes import guarded
from gangplan.hybrid.table import ENTRIES, methods
from gangplan.instances.generators.families import seed_of
from gangplan.instances.generators.large import make_large
from gangplan.solvers.run import relative_gap

from .ledger import ROOT

ROWS, PAGE = Path(__file__).with_name("large.csv"), ROOT / "docs" / "hybrid.md"
DEADLINES = (0.03, 0.1, 1.0, 3.0, 10.0)
GROUPS = (
    *product(("throughput",), ("contiguous", "free"), (1_000, 10_000)),
    *product(("step",), ("no contention", "contention"), (1_000, 10_000)),
    *product(("placement",), ("racks",), (256, 1_000)),
    *product(("schedule",), ("moldable",), (500, 2_000)),
)
HEAD = ("split", "index", "problem", "family", "size", "method", "deadline", "seconds", "value", "bound", "zero")
_BEGIN, _END = "<!-- large: begin -->\n", "<!-- large: end -->\n"


def command(commands: Any) -> None:
    """Add the command to the command line."""
    large = commands.add_parser("large", help="auto against each of its methods alone on large problems")
    large.add_argument("--split", default="test")
    large.add_argument("--indices", nargs="+", type=int, default=(3000, 3001, 3002), metavar="INDEX")
    large.add_argument("--deadlines", nargs="+", type=float, default=DEADLINES, metavar="SECONDS")
    large.add_argument("--only", default="", help="only groups and methods with this in 'problem family size method'")
    large.add_argument("--rows", type=Path, default=ROWS, metavar="FILE")
    large.add_argument("--check", action="store_true", help="run nothing, write nothing; fail if the page would change")
    large.set_defaults(act=_run)


def _run(options: argparse.Namespace) -> int:
    if not options.check:
        _solve_all(options)
    table = "\n".join(_table(_read(options.rows)))
    if options.rows != ROWS:
        print(table)
        return 0
    page = PAGE.read_text()
    new = f"{page.partition(_BEGIN)[0]}{_BEGIN}\n{table}\n\n{_END}{page.partition(_END)[2]}"
    if not options.check:
        PAGE.write_text(new)
    return int(options.check and new != page)


def _solve_all(options: argparse.Namespace) -> None:
    done = {tuple(row[x] for x in HEAD[:7]) for row in _read(options.rows)}
    fresh = not options.rows.exists()
    _use_processor_time()
    with options.rows.open("a", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        if fresh:
            out.writerow(HEAD)
        for index, (problem, family, size) in product(options.indices, GROUPS):
            made: Any = None
            for method, deadline in product(_entrants(problem, family), options.deadlines):
                key = (options.split, str(index), problem, family, str(size), method, f"{deadline:g}")
                if key in done or options.only not in " ".join(key[2:6]):
                    continue
                if made is None:
                    gangplan.warm_up(problem)
                    made = make_large(problem, family, seed_of(options.split, index), size)
                    gangplan.solve(made, time_limit=0.1, workers=1)
                found = _solve(made, method, deadline)
                if found.status != "INFEASIBLE":
                    out.writerow((*key, f"{found.wall_seconds:.3f}", found.objective, found.bound, found.zero))
                    file.flush()


def _solve(made: Any, method: str, deadline: float) -> gangplan.Result:
    """Return the result; where milliseconds decide, that of the median objective of three solves."""
    found = []
    for _ in range(1 if deadline >= SHORT else 3):
        gc.collect()
        found.append(gangplan.solve(made, time_limit=deadline, method=method, workers=1))
    return sorted(found, key=lambda x: np.inf if x.objective is None else x.objective)[len(found) // 2]


def _entrants(problem: str, variant: str) -> Iterator[str]:
    """Yield `auto` and the methods of its table that solve the variant and make plans."""
    solved = {name for name, variants in methods(problem).items() if variant in variants or problem != "throughput"}
    names = dict.fromkeys(entry.name for entry in ENTRIES if entry.objective == problem and entry.name in solved)
    yield from ("auto", *(name for name in names if name not in ("bounds", "spectral")))


def _use_processor_time() -> None:
    """Let the clock of a solve be the processor time of this process, which runs all methods itself."""

    def run(solve: Any, entry: Any, prepared: Any) -> None:
        if entry.quick or can_run_here(entry.method) or solve.remaining() >= PROCESS:  # else it would have no process
            guarded(solve, entry, prepared)

    portfolio.can_fork = lambda: False
    portfolio.guarded = run
    time.perf_counter = time.process_time


def _read(rows: Path) -> list[dict[str, str]]:
    if not rows.exists():
        return []
    with rows.open(newline="") as file:
        return list(csv.DictReader(file))


def _gap(row: dict[str, str], to: float | None) -> float:
    """Return the gap of a row's plan, 1 without a plan."""
    gap = relative_gap(float(row["value"]), to, float(row["zero"])) if row["value"] else 1.0
    return 1.0 if gap is None else gap


def _behind(mine: dict[str, str], rows: list[dict[str, str]]) -> float:
    """Return how much more the plan of a row of `auto` costs than the best of the other methods, 1 without a plan."""
    rivals = [float(row["value"]) for row in rows if row["method"] != "auto" and row["value"]]
    if not mine["value"]:
        return float(bool(rivals))
    value, zero = float(mine["value"]), float(mine["zero"])
    return (value - min(rivals, default=value)) / max(value - zero, 1e-300)


def _table(rows: list[dict[str, str]]) -> Iterator[str]:
    yield f"| problem | size | {' | '.join(f'{x:g} s' for x in DEADLINES)} | gap to the bound, {DEADLINES[-1]:g} s |"
    yield f"|---|---:|{'---:|' * (len(DEADLINES) + 1)}"
    for problem, family, size in GROUPS:
        cells = []
        for deadline in DEADLINES:
            own = [row for row in rows if _group(row) == (problem, family, str(size), f"{deadline:g}")]
            auto = [row for row in own if row["method"] == "auto"]
            behind = [_behind(mine, [row for row in own if _instance(row) == _instance(mine)]) for mine in auto]
            cells.append(f"{np.mean(behind):+.2%}, {max(behind):+.2%}" if behind else "")
        gaps = [_gap(row, float(row["bound"]) if row["bound"] else None) for row in auto]
        cells.append(f"{np.mean(gaps):.1%}, {max(gaps):.1%}" if gaps else "")
        yield f"| {problem}, {family} | {size:,} | {' | '.join(cells)} |"


def _group(row: dict[str, str]) -> tuple[str, str, str, str]:
    return row["problem"], row["family"], row["size"], row["deadline"]


def _instance(row: dict[str, str]) -> tuple[str, str]:
    return row["split"], row["index"]
