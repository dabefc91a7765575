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
from .pacml_suites import (
    BOUND,
    GROUPS,
    LEARNED,
    PACML,
    PLAN,
    PROTOCOL,
    RANDOM,
    SEARCHES,
    UNGUARDED,
    Cell,
    PacmlRow,
    append,
    read,
)

DATA = ROOT.parent / "shared" / "data" / "pipedream"
SHIPPED = {"physical": "pacml", "as-published": "pacml-as-published"}
"""The weights that are judged in each of the units."""

WIDTH = 1000
"""Of the beam search that knows all arrivals."""

Files = Mapping[tuple[str, str], Path]
"""The weights of a policy, by its name and the units."""


@dataclass(frozen=True, slots=True)
class Task:
    """One case, and who decides on it: policies by name, with the files of weights and the folder of profiles."""

    cell: Cell
    distribution: str
    seed: int
    policies: tuple[str, ...]
    files: Files
    folder: Path
    commit: str


def shipped(folder: Path) -> Files:
    """Return where the weights that come with the package lie."""
    return {(p, units): folder / f"{name}.safetensors" for p in (LEARNED, UNGUARDED) for units, name in SHIPPED.items()}


def digest(path: Path) -> str:
    """Return the first twelve digits of a file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def missing(
    cells: Sequence[Cell], path: Path, *, files: Files, folder: Path, only: str = "", say: Callable[[str], None] = print
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
    learned = {name for name, _ in files}  # who decides by weights, be they there or not
    there = {key: digest(file) for key, file in files.items() if file.is_file()}
    found = []
    for cell in cells:
        absent = [p for p in cell.policies if p in learned and (p, cell.units) not in there]
        for name in absent:
            say(f"{name}, {cell.units}: left out, there are no weights")
        for distribution, seed in ((d, s) for d in DISTRIBUTIONS for s in range(cell.seeds)):
            place = f"{cell.units} {cell.models} {cell.cluster} {cell.load}"
            chosen = tuple(
                p
                for p in cell.policies
                if p not in absent
                and only in f"{place} {p} {distribution} {seed}"
                and (PROTOCOL, there.get((p, cell.units), ""), cell.place, p, distribution, seed) not in known
            )
            groups = [(p,) for p in chosen] if {*SEARCHES} & {*chosen} else [chosen] if chosen else []
            found += [Task(cell, distribution, seed, group, files, folder, commit) for group in groups]
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
        row, seconds = rows[0], sum(x.seconds for x in rows)
        where = f"{row.units} {row.models} {row.cluster} {row.load:g} {row.distribution} seed {row.seed}"
        first = f"{row.policy} {row.blocked_or_running:.4f}"
        say(f"{i + 1:4}/{len(tasks)}  {where}  {first}, {len(rows)} policies in {seconds:.1f} s")
    return new


def simulated(task: Task) -> list[PacmlRow]:
    """Return the rows of a task; every outcome is checked.

    Raises:
        RuntimeError: if the check finds a fault.
    """
    cell, rows, checker = task.cell, [], Checker()
    types = _types(task.folder, cell.models, cell.cluster, cell.units)
    case = arrivals(types, task.distribution, task.seed, n=cell.jobs, load=cell.multiple)
    for name in task.policies:
        weights = task.files.get((name, cell.units))
        # a teacher is fitted, and code compiled, before the clock starts
        policy = None if name in (BOUND, PLAN) else _policy(name, task, types, weights)
        begin = perf_counter()
        if name == BOUND:
            rates = tuple(clairvoyant(case, time_limit=0, width=1, by_horizon=x).lp for x in (False, True))
        else:
            outcome = simulate(case, policy or search(case, width=WIDTH, by_horizon=True))
            rates = outcome.blocked, outcome.blocked_or_running
        seconds = perf_counter() - begin
        if name != BOUND and (faults := checker.check(outcome)):
            raise RuntimeError(f"{name} on {task.distribution}, seed {task.seed}: {'; '.join(faults)}")
        date, sha = datetime.now(UTC).isoformat(timespec="seconds"), "" if weights is None else digest(weights)
        about = date, task.commit, PROTOCOL, sha, *cell.place, name, task.distribution, task.seed
        rows.append(PacmlRow(*about, round(rates[0], 6), round(rates[1], 6), round(seconds, 3)))
    return rows


def _policy(name: str, task: Task, types: tuple[JobType, ...], weights: Path | None) -> Policy:
    if name in SEARCHES:
        from .pacml_search import Searched

        return Searched(task.folder, task.cell.units, task.distribution, task.seed, **SEARCHES[name])
    if name == RANDOM:
        from .pacml_search import RandomScores

        return RandomScores(task.seed)
    if weights is None:
        return make_policy(name, task.seed)
    policy: Policy = _learned(weights, name == LEARNED)
    simulate(arrivals(types, "A", 0, n=10), policy)
    return policy


@lru_cache(maxsize=8)
def _types(folder: Path, models: str, cluster: str, units: Units) -> tuple[JobType, ...]:
    blocks = Blocks(RampTopology(*map(int, cluster.split("x"))))
    return read_types(folder, GROUPS[models], blocks=blocks, units=units)


@lru_cache(maxsize=8)
def _learned(path: Path, guarded: bool) -> Any:
    from gangplan.learned.ramp.policy import RampPolicy

    return RampPolicy.load(path, guarded=guarded)
