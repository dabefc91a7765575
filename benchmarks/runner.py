"""Run the cases of a suite that the ledger does not have yet."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import gangplan
from gangplan import Status
from gangplan.hybrid.solve import versions
from gangplan.instances import GraphProblem
from gangplan.instances.placement import PlacementProblem
from gangplan.solvers.run import OPTIMAL_GAP

from .ledger import LEDGER, ROOT, Key, Row, append, measured_commit, read
from .rivals import RIVALS, solve_by_rival
from .suites import Case


@dataclass(frozen=True, slots=True)
class Settings:
    """How cases are run: by which seed and threads, with which data, into which ledger, at most how long each."""

    seed: int = 0
    workers: int = 2
    data: Path = ROOT.parent / "shared" / "data"
    ledger: Path = LEDGER
    most_seconds: float | None = None
    commit: str | None = None

    def limit(self, case: Case) -> float:
        """Return the case's time limit, cut to `most_seconds`."""
        return case.time_limit if self.most_seconds is None else min(case.time_limit, self.most_seconds)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a method or a rival."""

    seconds: float
    status: str
    objective: float | None
    bound: float | None
    gap: float | None


def run_suite(suite: str, cases: Sequence[Case], settings: Settings, console: Console | None = None) -> list[Row]:
    """Run what is missing and append a row after each solve; return the new rows.

    Ctrl-C stops between or within solves: an unfinished one leaves no row, and running again goes on from there.

    Raises:
        KeyboardInterrupt: after Ctrl-C.
        SystemExit: if the package that would be measured is not the one of this repository.
    """
    if not Path(gangplan.__file__ or "").resolve().is_relative_to(ROOT):
        raise SystemExit(f"gangplan is {gangplan.__file__}, not that of {ROOT}: its commit is unknown")
    commit = settings.commit or measured_commit()
    done = {row.key for row in read(settings.ledger)}
    todo = [case for case in cases if _key(case, commit, settings) not in done]
    fresh: list[Row] = []
    with _bar(console) as progress:
        task = progress.add_task(suite, total=len(cases), completed=len(cases) - len(todo))
        for case in todo:
            progress.update(task, description=f"{case.instance} {case.variant} {case.method}")
            row = _run(suite, case, commit, settings)
            append(row, settings.ledger)
            fresh.append(row)
            progress.console.print(_summary(row), highlight=False, soft_wrap=True)
            progress.advance(task)
    return fresh


def solve_case(
    problem: GraphProblem | PlacementProblem, method: str, *, time_limit: float, seed: int, workers: int
) -> Outcome:
    """Solve by a method of the package or by a rival.

    Raises:
        KeyboardInterrupt: after Ctrl-C, however well the solve took it.
    """
    if method not in RIVALS:
        result = gangplan.solve(problem, time_limit=time_limit, method=method, seed=seed, workers=workers)
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return Outcome(result.wall_seconds, str(result.status), result.objective, result.bound, result.gap)
    run = solve_by_rival(problem, method, time_limit=time_limit, seed=seed, workers=workers)
    seconds, gap = run.seconds(), run.gap
    if run.infeasible:
        status = Status.INFEASIBLE
    elif run.plan is None:
        status = Status.UNKNOWN
    else:
        status = Status.OPTIMAL if gap is not None and gap <= OPTIMAL_GAP else Status.FEASIBLE
    return Outcome(seconds, str(status), run.objective, run.bound, gap)


def size(problem: GraphProblem | PlacementProblem) -> tuple[int, int]:
    """Return the ops of a graph and its devices, or the jobs of a batch and the GPUs of its nodes."""
    if isinstance(problem, PlacementProblem):
        return len(problem.jobs), problem.fleet.n_gpus
    return problem.graph.n_ops, problem.cluster.n_devices


def _run(suite: str, case: Case, commit: str, settings: Settings) -> Row:
    load = os.getloadavg()[0]
    before = time.perf_counter()
    problem = case.make(settings.data)
    read_seconds = time.perf_counter() - before
    ops, devices = size(problem)
    limit = settings.limit(case)
    found = solve_case(problem, case.method, time_limit=limit, seed=settings.seed, workers=settings.workers)
    return Row(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit,
        suite=suite,
        instance=case.instance,
        content_hash=gangplan.content_hash(problem),
        variant=case.variant,
        ops=ops,
        devices=devices,
        method=case.method,
        seed=settings.seed,
        workers=settings.workers,
        time_limit=limit,
        read_seconds=round(read_seconds, 4),
        seconds=round(found.seconds, 4),
        status=found.status,
        objective=found.objective,
        bound=found.bound,
        gap=found.gap,
        load=round(load, 2),
        versions="; ".join(f"{name} {number}" for name, number in versions().items()),
    )


def _key(case: Case, commit: str, settings: Settings) -> Key:
    limit = settings.limit(case)
    return commit, case.instance, case.variant, case.method, settings.seed, settings.workers, limit


def _summary(row: Row) -> str:
    value = "" if row.objective is None else f"{row.objective:.6g}"
    gap = "" if row.gap is None else f"{row.gap:.3%}"
    place = f"{row.instance:<36} {row.variant:<10} {row.method:<12}"
    return f"{place} {row.seconds:8.2f} s  {row.status:<10} {value:>12} {gap}"


def _bar(console: Console | None) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=console)
