"""Run what benchmarks/pacml.csv lacks: the learned PAC-ML policy, its rivals and its bounds on the same cases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

from gangplan.instances import RampTopology
from gangplan.simulator.ramp import (
    DISTRIBUTIONS,
    Blocks,
    Case,
    JobType,
    Policy,
    arrivals,
    clairvoyant,
    make_policy,
    read_types,
    search,
    simulate,
)
from gangplan.simulator.ramp.check import Checker
from gangplan.simulator.ramp.step import Units

from .ledger import ROOT, measured_commit
from .pacml_rows import BOUND, LEARNED, PACML, PLAN, PROTOCOL, UNGUARDED, PacmlRow, append, read
from .pacml_suites import GROUPS, ROLLOUTS, SAMPLED, Cell

DATA = ROOT.parent / "shared" / "data"
SHIPPED = {"physical": "pacml", "as-published": "pacml-as-published"}
"""The weights that are judged in each of the units."""

WIDTH = 1000
"""Of the beam search that knows all arrivals."""

Files = Mapping[tuple[str, str], Path]
"""The weights of a policy, by its name and the units."""


@dataclass(frozen=True, slots=True)
class Task:
    """One case, and who decides on it.

    Attributes:
        cell: where.
        distribution, seed: of the case.
        policies: names.
        files: of weights.
        folder: of profiles.
        commit: of the code.
    """

    cell: Cell
    distribution: str
    seed: int
    policies: tuple[str, ...]
    files: Files
    folder: Path
    commit: str


def shipped(folder: Path) -> Files:
    """Return where the weights that come with the package lie."""
    return {
        (policy, units): folder / f"{name}.safetensors"
        for policy in (LEARNED, UNGUARDED)
        for units, name in SHIPPED.items()
    }


def digest(path: Path) -> str:
    """Return the first twelve digits of a file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def missing(
    cells: Sequence[Cell],
    path: Path,
    *,
    files: Files,
    folder: Path,
    only: str = "",
    say: Callable[[str], None] = print,
) -> list[Task]:
    """Return what there is no row of yet; policies without their weights are left out, in words.

    Args:
        cells: to run.
        path: of the rows.
        files: of weights.
        folder: of profiles.
        only: text in "units models cluster load policy distribution seed".
        say: is told what is left out.
    """
    known, commit = {row.key for row in read(path)}, measured_commit()
    # who decides by weights is in `files`, be they there or not
    learned = {name for name, _ in files}
    there = {key: digest(file) for key, file in files.items() if file.is_file()}
    found = []
    for cell in cells:
        absent = [p for p in cell.policies if p in learned and (p, cell.units) not in there]
        for name in absent:
            say(f"{name}, {cell.units}: left out, there are no weights")
        for distribution in DISTRIBUTIONS:
            for seed in range(cell.seeds):
                chosen = tuple(
                    name
                    for name in cell.policies
                    if name not in absent
                    and only in f"{cell.units} {cell.models} {cell.cluster} {cell.load} {name} {distribution} {seed}"
                    and _key(cell, there.get((name, cell.units), ""), distribution, name, seed) not in known
                )
                groups = [(name,) for name in chosen] if {ROLLOUTS, SAMPLED} & set(chosen) else [chosen]
                tasks = (Task(cell, distribution, seed, group, files, folder, commit) for group in groups if group)
                found += list(tasks)
    return found


def run(
    tasks: Sequence[Task], path: Path = PACML, *, processes: int = 1, say: Callable[[str], None] = print
) -> list[PacmlRow]:
    """Run tasks, with a line for each; rows are written after each. Return the new rows."""
    from joblib import Parallel, delayed

    new: list[PacmlRow] = []
    work = Parallel(n_jobs=processes, return_as="generator_unordered")(delayed(simulated)(task) for task in tasks)
    for i, rows in enumerate(work):
        append(rows, path)
        new += rows
        where = f"{rows[0].units} {rows[0].models} {rows[0].cluster} {rows[0].load:g}"
        first = f"{rows[0].policy} {rows[0].blocked_or_running:.4f}"
        seconds = sum(row.seconds for row in rows)
        of = f"{rows[0].distribution} seed {rows[0].seed}"
        say(f"{i + 1:4}/{len(tasks)}  {where:36} {of}  {first}, {len(rows)} policies in {seconds:.1f} s")
    return new


def simulated(task: Task) -> list[PacmlRow]:
    """Return the rows of a task; every outcome is checked.

    Raises:
        RuntimeError: if the check finds a fault.
    """
    cell, rows, checker = task.cell, [], Checker()
    types = _types(task.folder, cell.models, cell.size, cell.units)
    case = arrivals(types, task.distribution, task.seed, n=cell.jobs, load=cell.multiple)
    for name in task.policies:
        weights = task.files.get((name, cell.units))
        blocked, running, seconds = _rates(case, name, task, weights, checker)
        date = datetime.now(UTC).isoformat(timespec="seconds")
        sha = "" if weights is None else digest(weights)
        figures = round(blocked, 6), round(running, 6), round(seconds, 3)
        rows.append(
            PacmlRow(date, task.commit, PROTOCOL, sha, *cell.place, name, task.distribution, task.seed, *figures)
        )  # fmt: skip
    return rows


def _rates(case: Case, name: str, task: Task, weights: Path | None, checker: Checker) -> tuple[float, float, float]:
    begin = perf_counter()
    if name == BOUND:
        plain, ended = (clairvoyant(case, time_limit=0, width=1, by_horizon=x).lp for x in (False, True))
        return plain, ended, perf_counter() - begin
    # a teacher is fitted before the clock starts
    policy = None if name == PLAN else _policy(name, task, weights)
    begin = perf_counter()
    outcome = simulate(case, policy or search(case, width=WIDTH, by_horizon=True))
    seconds = perf_counter() - begin
    faults = checker.check(outcome)
    if faults:
        raise RuntimeError(f"{name} on {task.distribution}, seed {task.seed}: {'; '.join(faults)}")
    return outcome.blocked, outcome.blocked_or_running, seconds


def _policy(name: str, task: Task, weights: Path | None) -> Policy:
    if weights is not None:
        policy: Policy = _learned(weights, name == LEARNED)
        few = arrivals(_types(task.folder, task.cell.models, task.cell.size, task.cell.units), "A", 0, n=10)
        simulate(few, policy)  # compiled before the clock starts
        return policy
    if name in (ROLLOUTS, SAMPLED):
        from .pacml_search import Rollouts, SampledBeam

        cell = task.cell
        if name == ROLLOUTS:
            return Rollouts(task.folder, cell.units, task.distribution, task.seed)
        return SampledBeam(_types(task.folder, cell.models, cell.size, cell.units), task.distribution, task.seed)
    return make_policy(name, task.seed)


@lru_cache(maxsize=8)
def _types(folder: Path, models: str, size: tuple[int, int, int], units: Units) -> tuple[JobType, ...]:
    return read_types(folder, GROUPS[models], blocks=Blocks(RampTopology(*size)), units=units)


@lru_cache(maxsize=8)
def _learned(path: Path, guarded: bool) -> Any:
    import torch

    from gangplan.learned.ramp.policy import RampPolicy

    torch.set_num_threads(1)
    return RampPolicy.load(path, guarded=guarded)


def _key(cell: Cell, weights: str, distribution: str, name: str, seed: int) -> Any:
    where = cell.units, cell.models, cell.cluster, distribution
    return PROTOCOL, weights, *where, cell.load, cell.jobs, name, seed
