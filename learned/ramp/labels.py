"""Labels: a teacher for each setting, and decisions of episodes that it, or the policy, plays; on some processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from gangplan.simulator.ramp import DISTRIBUTIONS

from .network import Network, Weights, compiled
from .settings import Settings
from .teacher import Labels, label
from .values import value_table
from .worlds import Episode, World

EPISODE = 2000
AHEAD = 20_000
"""Jobs of which the futures are drawn."""

Draw = Callable[[np.random.Generator, int], Episode]
"""From a generator and a number of jobs to an episode."""


@dataclass(frozen=True, slots=True, eq=False)
class Taught:
    """A setting, its teacher and what that has labelled.

    Attributes:
        world: where.
        draw: its episodes.
        table: of values.
        planned: whether the teacher plans futures instead of playing on by the table.
        quick: labels by the table alone.
        searched: labels by looking ahead.
    """

    world: World
    draw: Draw
    table: Any
    planned: bool
    quick: list[Labels]
    searched: list[Labels]


def taught(world: World, settings: Settings, seed: int, *, first_seed: int) -> list[Taught]:
    """Return a teacher for every set of the world and published distribution, with its first labels.

    Args:
        world: of the published models.
        settings: how many labels of which kind, and how long a table is fitted.
        seed: of chance.
        first_seed: where the seeds of the cases begin.
    """
    jobs = [
        delayed(_setting)(world, unit, name, settings, seed, first_seed + 1000 * i)
        for i, (unit, name) in enumerate((u, d) for u in world.sets for d in DISTRIBUTIONS)
    ]
    return list(Parallel(n_jobs=settings.processes)(jobs))


def corrected(teachers: Sequence[Taught], network: Network, settings: Settings, seed: int) -> list[Taught]:
    """Return the teachers with labels of states that a network comes to, too (DAgger: Ross et al., AISTATS 2011)."""
    jobs = [delayed(_correct)(x, compiled(network, x.world.graphs), settings, seed + i) for i, x in enumerate(teachers)]
    return list(Parallel(n_jobs=settings.processes)(jobs))


def _setting(world: World, unit: str, name: str, settings: Settings, seed: int, first_seed: int) -> Taught:
    rng = np.random.default_rng([seed, first_seed])
    draw = partial(_published, world, unit, name, first_seed)
    table = value_table(
        world, lambda rng: draw(rng, EPISODE * 2), rng, rounds=settings.rounds, episodes=settings.rounds,
        choose=settings.blocks,
    )  # fmt: skip
    made = Taught(world, draw, table, name in settings.planned, [], [])
    searched = settings.planned_labels if made.planned else settings.searched
    return _more(made, settings.labels, searched, settings, rng, None)


def _published(world: World, unit: str, name: str, first_seed: int, rng: np.random.Generator, n: int) -> Episode:
    return world.draw(unit, name, first_seed + int(rng.integers(2**30)), n)


def _correct(teacher: Taught, student: Weights, settings: Settings, seed: int) -> Taught:
    rng = np.random.default_rng([seed, 1])
    return _more(teacher, 0, settings.corrected, settings, rng, student)


def _more(
    teacher: Taught, quick: int, searched: int, settings: Settings, rng: np.random.Generator, student: Weights | None
) -> Taught:
    """Return the teacher with so many labels more of each kind."""
    found: tuple[list[Labels], list[Labels]] = (list(teacher.quick), list(teacher.searched))
    futures = teacher.draw(rng, AHEAD) if searched else None
    for made, many, ahead in ((found[0], quick, None), (found[1], searched, futures)):
        left = many
        while left > 0:
            # what was looked ahead from is kept: that is what takes long
            keep, n = (0.4, EPISODE) if ahead is None else (1.0, min(EPISODE, left + 50))
            made.append(
                label(
                    teacher.world, teacher.draw(rng, n), teacher.table, keep, int(rng.integers(2**31)), ahead=ahead,
                    planned=teacher.planned, student=student, choose=settings.blocks,
                )
            )  # fmt: skip
            left -= max(len(made[-1].kind), 1)
    return replace(teacher, quick=found[0], searched=found[1])
