"""What every candidate of a state is worth: the schedule that a policy makes after it, from there to the end."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers.schedule.prepare import prepare

from ..encode.encoding import Encoding
from .imitate import Example, example_of, joined
from .labels import best_list
from .play import Net
from .player import Player, gumbel

_MOST = 50.0
"""Regrets are cut off here, in units."""


def player_of(split: str, index: int, jobs: int) -> Player:
    """Return an instance of the family moldable of up to so many jobs."""
    return Player(prepare(make("schedule", "moldable", seed_of(split, index), jobs)))


def taught(
    player: Player,
    graph: Encoding,
    walk: Net,
    rollout: Net,
    rng: np.random.Generator,
    *,
    states: int,
    noise: float = 0.0,
) -> Example | None:
    """Walk by one policy and label some states of the way by rollouts of another; None if none has a choice.

    Args:
        player: the instance.
        graph: of it.
        walk: chooses, with noise on its scores.
        rollout: goes on from each candidate.
        rng: draws states and noise.
        states: to label at most.
        noise: scale of the noise.
    """
    added = gumbel(player.p.n, player.most, noise, rng) if noise else np.empty((0, 1))
    _, steps = player.watch(walk, added)
    open_steps = np.flatnonzero(steps.count > 1)
    if not len(open_steps):
        return None
    which = np.sort(rng.choice(open_steps, min(states, len(open_steps)), replace=False)).tolist()
    return example_of(graph, steps, which, [_regret(player, player.values(rollout, steps, t)) for t in which])


def shown(
    player: Player, graph: Encoding, rollout: Net, rng: np.random.Generator, *, states: int, seconds: float
) -> Example | None:
    """Solve an instance, and label states on the way to its best schedule: the next step on it is worth the optimum.

    All others are worth what a rollout after them comes to.
    """
    found = best_list(player.p, seconds)
    if found is None:
        return None
    taken, cost = found
    made = []
    for t in np.sort(rng.choice(len(taken), min(states, len(taken)), replace=False)).tolist():
        _, steps = player.watch(rollout, follow=taken[:t])
        if len(steps.count) <= t or steps.count[t] < 2:
            continue
        worth = player.values(rollout, steps, t)
        jobs, options = steps.jobs()[t, : len(worth)], steps.cands[t, : len(worth), 1]
        worth = np.where((jobs == taken[t, 0]) & (options == taken[t, 1]), np.minimum(worth, cost), worth)
        made.append(example_of(graph, steps, [t], [_regret(player, worth)]))
    return joined(made) if made else None


def _regret(player: Player, worth: FloatArray) -> FloatArray:
    least = worth.min()
    if not np.isfinite(least):
        return np.zeros(len(worth))
    return np.asarray(np.minimum((worth - least) / player.unit, _MOST))
