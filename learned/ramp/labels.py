"""Labels: a table of values for each setting, and rollouts by it, on two processes.

The published settings come first; beside them stand worlds that are like none of them, with a table that is fitted for
less long.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from gangplan.simulator.ramp import DISTRIBUTIONS
from gangplan.simulator.ramp.step import Units

from .elsewhere import Draw, elsewhere
from .teacher import Labels, label, value_table
from .worlds import Episode, World

EPISODE = 2000
AHEAD = 20_000
"""Jobs of which the futures of rollouts are drawn."""

BRIEF = 5
"""Rounds and episodes of a table for a world beside the published, a quarter of the work for one of those."""


def labelled(
    world: World,
    count: int,
    searched: int,
    seed: int,
    *,
    first_seed: int,
    choose: bool,
    processes: int,
    rounds: int = 10,
) -> list[tuple[World, Labels]]:
    """Return labels for every set of the world and published distribution, and the world with each.

    Args:
        world: of the published models.
        count: decisions of each setting that are labelled by its table alone.
        searched: decisions of each setting that are labelled by rollouts.
        seed: of chance.
        first_seed: where the seeds of the cases begin.
        choose: see `gangplan.learned.ramp.rows.desk`.
        processes: that work at once.
        rounds: of policy iteration that make a table, and episodes in each.
    """
    jobs = [
        delayed(_setting)(world, unit, name, count, searched, seed, first_seed + 1000 * i, choose, rounds)
        for i, (unit, name) in enumerate((u, d) for u in world.sets for d in DISTRIBUTIONS)
    ]
    return [(world, x) for found in Parallel(n_jobs=processes)(jobs) for x in found]


def labelled_elsewhere(
    profiles: str | Path,
    units: Units,
    worlds: int,
    count: int,
    searched: int,
    seed: int,
    *,
    first_seed: int,
    choose: bool,
    processes: int,
) -> list[tuple[World, Labels]]:
    """Return labels for worlds of `gangplan.learned.ramp.elsewhere`, and the world with each; see `labelled`."""
    jobs = [
        delayed(_world)(profiles, units, count, searched, seed, first_seed + 2**20 * (i + 1), choose)
        for i in range(worlds)
    ]
    return [(world, x) for world, found in Parallel(n_jobs=processes)(jobs) for x in found]


def _setting(
    world: World,
    unit: str,
    name: str,
    count: int,
    searched: int,
    seed: int,
    first_seed: int,
    choose: bool,
    rounds: int,
) -> list[Labels]:
    def draw(rng: np.random.Generator, n: int) -> Episode:
        return world.draw(unit, name, first_seed + int(rng.integers(2**30)), n)

    rng = np.random.default_rng([seed, first_seed])
    table = value_table(world, lambda rng: draw(rng, EPISODE * 2), rng, rounds=rounds, episodes=rounds, choose=choose)
    return _labels(world, draw, table, count, searched, rng, choose)


def _world(
    profiles: str | Path, units: Units, count: int, searched: int, seed: int, first_seed: int, choose: bool
) -> tuple[World, list[Labels]]:
    world, draw = elsewhere(profiles, units, seed + first_seed, first_seed)
    rng = np.random.default_rng([seed, first_seed])
    table = value_table(world, lambda rng: draw(rng, EPISODE * 2), rng, rounds=BRIEF, episodes=BRIEF, choose=choose)
    return world, _labels(world, draw, table, count, searched, rng, choose)


def _labels(
    world: World, draw: Draw, table: object, count: int, searched: int, rng: np.random.Generator, choose: bool
) -> list[Labels]:
    found = []
    for many, ahead in ((count, None), (searched, draw(rng, AHEAD) if searched else None)):
        left = many
        while left > 0:
            # what was played on is kept: that is what takes long
            keep, n = (0.4, EPISODE) if ahead is None else (1.0, min(EPISODE, left + 50))
            made = label(world, draw(rng, n), table, keep, int(rng.integers(2**31)), ahead=ahead, choose=choose)
            found.append(made)
            left -= max(len(made.kind), 1)
    return found
