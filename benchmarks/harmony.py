"""Harmony, ours, many schedulers and all rivals on the same cases of hidden interference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from gangplan.learned.policy.weights import named
from gangplan.systems.interference.cases import OF_AGENTS, VALIDATION, maker
from gangplan.systems.interference.ground import Interference
from gangplan.systems.interference.policies import make_policy

from . import centres, harmony_tables
from .rows import Task, digest
from .study import Options, Study

LARGE = ("poisson-32",)
"""Cases of which a third of the seeds are run."""
SEEDS = 10


def tasks(options: Options) -> Iterator[Task]:
    """Yield every case, policy and test seed; of large cases fewer seeds."""
    for case in options.cases or (*harmony_tables.GROUND, *OF_AGENTS):
        seeds = options.seeds or SEEDS
        seeds = max(5, seeds // 3) if case in (*LARGE, *OF_AGENTS) else seeds
        usual = centres.policies_of(case) if case in OF_AGENTS else harmony_tables.POLICIES
        for policy in options.policies or usual:
            weights = digest(named(policy, case, options.weights))
            yield from (Task(case, policy, seed, weights) for seed in range(seeds))


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Simulate; see `Interference.figures`."""
    ground = Interference(task.case, f"{options.data}")
    drawn = ground.draw(task.seed)
    figures = ground.play(_policy(task.policy, task.case, options.weights)(drawn), drawn)
    return {name: figures[name] for name in STUDY.figures}


@cache
def _policy(name: str, case: str, weights: Path) -> Any:
    return make_policy(name, case, weights)


def draw(options: Options) -> None:
    """Draw both pictures."""
    from . import centres_figure, harmony_figure

    harmony_figure.draw()
    centres_figure.draw(STUDY.found(options.rows))


def room(options: Options) -> None:
    """Print how far longer and exact searches are from `colocate`."""
    from .harmony_room import room

    seeds = options.seeds or SEEDS
    for name, begin in product(options.cases or ("poisson", "shared"), (VALIDATION + 100, 0)):
        print(f"seeds from {begin}", *room(name, maker(name, options.data), range(begin, begin + seeds)), sep="\n")


STUDY = Study(
    "harmony",
    ("mean_jct", "p95_jct", "makespan", "rate"),
    tasks,
    measure,
    {"harmony.md": harmony_tables.TABLES, "marl.md": centres.TABLES},
    {"figure": draw, "room": room},
)
"""Figures are seconds; `rate` is placements of tasks a second of processor time."""
