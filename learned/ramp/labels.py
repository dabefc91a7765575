"""Labels of the published settings: a table of values each, and rollouts by it, on two processes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed

from gangplan.simulator.ramp import DISTRIBUTIONS

from .teacher import Labels, label, value_table
from .worlds import Episode, World

EPISODE = 2000
AHEAD = 20_000
"""Jobs of which the futures of rollouts are drawn."""


def labelled(
    world: World, count: int, searched: int, seed: int, *, first_seed: int, choose: bool, processes: int
) -> list[Labels]:
    """Return labels for every set of the world and published distribution.

    Args:
        world: of the published models.
        count: decisions of each setting that are labelled by its table alone.
        searched: decisions of each setting that are labelled by rollouts.
        seed: of chance.
        first_seed: where the seeds of the cases begin.
        choose: see `gangplan.learned.ramp.rows.desk`.
        processes: that work at once.
    """
    jobs = [
        delayed(_setting)(world, unit, name, count, searched, seed, first_seed + 1000 * i, choose)
        for i, (unit, name) in enumerate((u, d) for u in world.sets for d in DISTRIBUTIONS)
    ]
    return [x for found in Parallel(n_jobs=processes)(jobs) for x in found]


def _setting(
    world: World, unit: str, name: str, count: int, searched: int, seed: int, first_seed: int, choose: bool
) -> list[Labels]:
    def draw(n: int) -> Callable[[np.random.Generator], Episode]:
        return lambda rng: world.draw(unit, name, first_seed + int(rng.integers(2**30)), n)

    rng = np.random.default_rng([seed, first_seed])
    table = value_table(world, draw(EPISODE * 2), rng, choose=choose)
    found = []
    for many, ahead in ((count, None), (searched, draw(AHEAD)(rng))):
        left = many
        while left > 0:
            keep = min(1.0, left / EPISODE) if ahead is not None else 0.4
            n = EPISODE if ahead is None else min(EPISODE, left + 50)
            made = label(world, draw(n)(rng), table, keep, int(rng.integers(2**31)), ahead=ahead, choose=choose)
            found.append(made)
            left -= max(len(made.kind), 1)
    return found
