"""The command ``python -m benchmarks online``: latencies and traces of `Scheduler` that online.csv lacks; its page."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .ledger import ROOT, measured_commit
from .online_rows import CSV, OnlineRow, add, read

DATA = ROOT.parent / "shared" / "data"


def command(commands: Any) -> None:
    """Add the command."""
    online = commands.add_parser("online", help="Scheduler: latencies and traces that online.csv lacks, its page")
    online.add_argument("what", choices=("latency", "jct", "page"))
    online.add_argument("--only", default="", help="only runs with this in 'trace policy', or GPUs of this number")
    online.add_argument("--jobs", type=int, default=5000, help="that arrive, for latencies  [default: 5000]")
    online.add_argument("--data", type=Path, default=DATA, help="folder of published data  [default: ../shared/data]")
    online.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    online.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from .online_page import write_page

    if options.what == "latency":
        latencies(options.only, options.jobs)
    elif options.what == "jct":
        traces(options.only, options.data)
    return write_page(check=options.check)


def latencies(only: str = "", jobs: int = 5000) -> None:
    """Measure decisions on clusters of every size."""
    from .online_latency import NODES, measure

    for gpus in NODES:
        if only and only != str(gpus):
            continue
        for price, end in ((None, ""), (300.0, ", stops")):
            found = measure(gpus, 0, jobs, price)
            name = f"{gpus:,} GPUs, {jobs:,} jobs{end}"
            row = _row("latency", name, "hybrid", gpus, found.p99, 0.0, found.seconds)
            add([_with(row, median=found.median, thread=found.thread, memory=found.memory)])
            print(f"{name:40} p99 {found.p99 * 1e3:.2f} ms, of its thread {found.thread * 1e3:.2f} ms", flush=True)


def traces(only: str = "", data: Path = DATA) -> None:
    """Run the traces by the policies that the file lacks.

    Raises:
        AssertionError: if a schedule is better than the bound.
    """
    from .online_jct import CASES, bound, labels, simulated

    known = {row.key for row in read()}
    for case in CASES:
        if not (data / case.needs).exists():
            print(f"{case.name}: left out, there is no {case.needs} in the data folder")
            continue
        missing = [x for x in labels(case) if ("jct", case.name, x, 0) not in known and only in f"{case.name} {x}"]
        if not missing:
            continue
        work = case.make(data)
        least = bound(case, work)
        for label in missing:
            found = simulated(case, work, label, 0)
            assert found.mean_jct >= least * (1 - 1e-9), f"{case.name}, {label}: {found.mean_jct} is below {least}"
            row = _row("jct", case.name, label, work.n_jobs, found.mean_jct, least, found.seconds)
            add([_with(row, median=found.median, thread=found.p99)])
            print(f"{case.name:40} {label:24} mean JCT {found.mean_jct:10.0f}  {found.seconds:6.1f} s", flush=True)


def _row(kind: str, name: str, policy: str, size: int, value: float, bound: float, seconds: float) -> OnlineRow:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return OnlineRow(now, measured_commit(), kind, name, policy, size, 0, value, 0.0, 0.0, bound, 0, seconds)


def _with(row: OnlineRow, **values: Any) -> OnlineRow:
    from dataclasses import replace

    return replace(row, **values)


__all__ = ["CSV", "command", "latencies", "traces"]
