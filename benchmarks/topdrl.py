"""TopDRL, ours and all rivals on the same workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from gangplan.hybrid.bench.makers import SCHEDULERS, Near
from gangplan.instances import InstanceError
from gangplan.simulator.gangs.mixes import SMALL
from gangplan.systems.topdrl.ground import Topdrl
from gangplan.systems.topdrl.policies import make_policy, weights_of
from gangplan.systems.topdrl.simulate import bound
from gangplan.systems.topdrl.suites import SUITES, ClusterSuite, suite

from .rows import Task, digest
from .study import Options, Study
from .topdrl_tables import BOUND, CLASSIC, GRID, NEAR, NEAREST, ORACLE, OTHERS, RESULTS, SUMMARY, WINDOWS, full
from .topdrl_window import window

JOBS, SECONDS = 15, 10.0
"""Of a window, and for its proof."""
SEEDS = 10
"""Of windows ten times as many."""


def tasks(options: Options) -> Iterator[Task]:
    """Yield every suite, test seed and policy, the grid of rules too."""
    for name in options.cases or (*SUITES, WINDOWS):
        try:
            ground = _ground(name, options.data)
        except InstanceError as error:
            print(f"{name}: left out, {error}")
            continue
        rules = GRID if name != WINDOWS else tuple(map(full, CLASSIC))
        chosen = options.policies or (*rules, *OTHERS, *(NEAREST if name != WINDOWS else ()))
        weights = {p: digest(weights_of(p, ground, options.weights)) for p in chosen}
        for seed in range(options.seeds or (SEEDS if name != WINDOWS else 10 * SEEDS)):
            yield from (Task(name, policy, seed, weights[policy]) for policy in chosen)


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Simulate, or prove what no plan is below; of a window the oracle is what its best plan comes to."""
    if task.policy == BOUND or (task.policy, task.case) == (ORACLE, WINDOWS):
        return {"mean_jct": _proved(task.case, task.seed, options.data)[task.policy]}
    ground = Near(_ground(task.case, options.data))
    drawn = ground.draw(task.seed)
    if task.policy in SCHEDULERS:
        return ground.play(ground.policy(task.policy)(drawn, task.seed), drawn)
    policy = ground.always(_policy(task.policy, task.case, options.data, options.weights))
    return ground.play(policy(drawn, task.seed), drawn)


@cache
def _ground(name: str, data: Path) -> ClusterSuite:
    if name == WINDOWS:
        return replace(suite("small"), name=WINDOWS, draw=lambda seed: (replace(SMALL, jobs=JOBS).draw(seed), None))
    return suite(name, data)


@cache
def _policy(name: str, case: str, data: Path, weights: Path) -> Any:
    return make_policy(name, suite=_ground(case, data), folder=weights)


@cache
def _proved(name: str, seed: int, data: Path) -> Mapping[str, float]:
    ground = _ground(name, data)
    work, _ = ground.draw(seed)
    if name == WINDOWS:
        best = window(work, ground.fleet, ground.proximity, time_limit=SECONDS)
        return {ORACLE: best.mean_jct, BOUND: best.bound}
    return {BOUND: bound(work, ground.fleet, ground.proximity)}


PAGES = {"topdrl.md": SUMMARY, "topdrl-results.md": RESULTS, "scheduler-results.md": NEAR}
STUDY = Study("topdrl", tuple(Topdrl.figures), tasks, measure, PAGES)
"""See `Topdrl.figures`."""
