"""The learned PAC-ML policy, its rivals, its bounds and its ablations on the same cases; `--case` takes suites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

from gangplan.instances import InstanceError, RampTopology
from gangplan.systems.pacml.arrivals import DISTRIBUTIONS, ArrivalCase, arrivals
from gangplan.systems.pacml.baselines import make_policy
from gangplan.systems.pacml.check import Checker
from gangplan.systems.pacml.jobs import Blocks, JobType, read_types
from gangplan.systems.pacml.plans import clairvoyant, search
from gangplan.systems.pacml.simulate import Decides, RampOutcome, simulate
from gangplan.systems.pacml.step import Units

from .pacml_ablations import SHIPPED, train, weights_of
from .pacml_suites import (
    ABLATIONS,
    BOTH,
    BOUND,
    GROUPS,
    LEARNED,
    PAST,
    PLAN,
    RANDOM,
    RANDOM_BOTH,
    SEARCHES,
    SUITES,
    TRAINED,
    UNGUARDED,
    Cell,
)
from .pacml_tables import TABLES, alike
from .rows import Task, digest
from .study import Options, Study

WIDTH = 1000
"""Of the beam search that knows all arrivals."""


def tasks(options: Options) -> Iterator[Task]:
    """Yield every cell, distribution, test seed and policy of the suites; ablations are trained first."""
    suites = options.chosen(suite for suite in SUITES if suite != ABLATIONS or options.cases)
    for cell in (cell for suite in suites for cell in SUITES[suite]):
        weights = {}
        for policy in (p for p in cell.policies if not options.policies or p in options.policies):
            if policy in TRAINED:
                train(policy, cell.units, options.out, _profiles(options))
            path = file_of(policy, cell.units, options)
            weights[policy] = digest(path if path is not None and path.is_file() else None)
        for d in DISTRIBUTIONS:
            for seed in range(min(cell.seeds, options.seeds or cell.seeds)):
                yield from (Task(cell.case(d), policy, seed, x) for policy, x in weights.items())


def file_of(policy: str, units: Units, options: Options) -> Path | None:
    """Return where the weights of a policy lie or should lie, None of one without."""
    if policy in (LEARNED, UNGUARDED, BOTH):
        return options.weights / f"{SHIPPED[units]}.safetensors"
    return weights_of(policy, units, options.out) if policy in TRAINED else None


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Simulate, search or bound; every outcome is checked.

    Raises:
        InstanceError: if weights or profiles are not there.
        RuntimeError: if the check finds a fault.
    """
    cell, distribution = Cell.read(task.case)
    name, case = task.policy, drawn(task, options)
    types = case.types
    # a teacher is fitted before the clock starts
    policy = None if name in (BOUND, PLAN) else _policy(task, cell, distribution, types, options)
    begin = perf_counter()
    if name == BOUND:
        rates = tuple(clairvoyant(case, time_limit=0, width=1, by_horizon=x).lp for x in (False, True))
        return _figures(rates, perf_counter() - begin)
    planned = policy or search(case, width=WIDTH, by_horizon=True)
    made = perf_counter() - begin
    outcome, seconds = play(task, case, planned)
    return _figures((outcome.blocked, outcome.blocked_or_running), made + seconds)


def drawn(task: Task, options: Options) -> ArrivalCase:
    """Return the jobs that arrive."""
    cell, distribution = Cell.read(task.case)
    types = _types(_profiles(options), cell.models, cell.cluster, cell.units)
    return arrivals(types, distribution, task.seed, n=cell.jobs, load=cell.multiple)


def play(task: Task, case: ArrivalCase, policy: Decides) -> tuple[RampOutcome, float]:
    """Return what a policy does, checked, and the seconds of the simulation.

    Raises:
        RuntimeError: if the check finds a fault.
    """
    begin = perf_counter()
    outcome = simulate(case, policy)
    seconds = perf_counter() - begin
    if faults := Checker().check(outcome):
        raise RuntimeError(f"{task}: {'; '.join(faults)}")
    return outcome, seconds


def _figures(rates: tuple[float, ...], seconds: float) -> Mapping[str, float]:
    return dict(zip(STUDY.figures, (round(rates[0], 6), round(rates[1], 6), round(seconds, 3)), strict=True))


def _policy(task: Task, cell: Cell, distribution: str, types: tuple[JobType, ...], options: Options) -> Decides:
    name, weights = task.policy, file_of(task.policy, cell.units, options)
    if name in SEARCHES:
        from .pacml_search import Searched

        return Searched(_profiles(options), cell.units, distribution, task.seed, **SEARCHES[name])
    if name in (RANDOM, RANDOM_BOTH):
        from .pacml_search import RandomScores

        return RandomScores(task.seed, plans=name == RANDOM_BOTH)
    if name in PAST:
        from gangplan.systems.pacml.learned.hindsight import PastPlans

        return PastPlans(task.seed, PAST[name])
    if weights is None:
        return make_policy(name, task.seed)
    if not weights.is_file():
        raise InstanceError("policy", f"{name!r}: there are no weights {weights.name}")
    policy: Decides = _learned(weights, name != UNGUARDED, name == BOTH)
    simulate(arrivals(types, "A", 0, n=10), policy)
    return policy


def _profiles(options: Options) -> Path:
    return options.data / "pipedream"


@lru_cache(maxsize=8)
def _types(folder: Path, models: str, cluster: str, units: Units) -> tuple[JobType, ...]:
    blocks = Blocks(RampTopology(*map(int, cluster.split("x"))))
    return read_types(folder, GROUPS[models], blocks=blocks, units=units)


@lru_cache(maxsize=8)
def _learned(path: Path, guarded: bool, plans: bool) -> Any:
    from gangplan.systems.pacml.learned.hindsight import Futures
    from gangplan.systems.pacml.learned.policy import RampPolicy

    return RampPolicy.load(path, guarded=guarded, futures=Futures() if plans else None)


def draw(options: Options) -> None:
    """Draw the blocking."""
    from .pacml_figures import draw_blocking

    draw_blocking(STUDY.found(options.rows))


STUDY = Study(
    "pacml",
    ("blocked", "blocked_or_running", "seconds"),
    tasks,
    measure,
    {"pacml-results.md": TABLES},
    {"figure": draw},
    alike,
)
"""The rates, of which the second is the published one; seconds of the simulation or search, without the check."""
