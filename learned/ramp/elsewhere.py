"""Worlds beside the published one: other networks, users, loads, and pods of larger clusters, for labels and judges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from gangplan.instances import RampTopology
from gangplan.simulator.ramp import DISTRIBUTIONS, Blocks, Fractions, JobType, read_types
from gangplan.simulator.ramp.step import Units

from .pods import pods
from .worlds import PUBLISHED, Episode, World, network

PODS = (8, 8, 2), (8, 8, 8)
"""Clusters of which one pod is a world."""

SET = "all"
"""The one set of such a world."""

Draw = Callable[[np.random.Generator, int], Episode]
"""From a generator and a number of jobs to an episode."""


def elsewhere(profiles: str | Path, units: Units, seed: int, first_seed: int, *, users: str = "") -> tuple[World, Draw]:
    """Return a world, and how its episodes are drawn.

    Half of the worlds have one kind of job, the others two to five. Kinds are the published models, or networks made by
    this project's generators, on devices slower or faster by up to three times: that changes what a transfer costs
    beside the compute. Six in ten are on the published cluster, three in ten a pod of a larger one, the others have
    64 servers. Users are most often those of the published distribution that asks for most, B.

    Args:
        profiles: folder of the published models.
        units: of the types.
        seed: of all that is drawn but the episodes.
        first_seed: where the seeds of the episodes begin.
        users: a published distribution, or drawn.
    """
    rng = np.random.default_rng([seed, 6])
    place = rng.random()
    size = PUBLISHED if place < 0.6 else PODS[int(rng.integers(2))] if place < 0.9 else (4, 4, 4)
    blocks = Blocks(RampTopology(*size))
    known = read_types(profiles, blocks=blocks, units=units)
    count = 1 if rng.random() < 0.5 else int(rng.integers(2, 6))
    chosen = rng.permutation(len(known))[:count]
    types = tuple(
        _slower(rng, known[k]) if rng.random() < 0.6 else network(rng, blocks, units, i, slower=_factor(rng) * 4)
        for i, k in enumerate(chosen.tolist())
    )
    pod = pods(blocks, choose=True)[0] if size in PODS else None
    world = World(blocks.topology, {SET: types}, pod)
    fractions = DISTRIBUTIONS[users] if users else _fractions(rng)
    load, poisson = float(rng.uniform(0.45, 1.55)), bool(rng.random() < 0.3)

    return world, partial(_draw, world, fractions, first_seed, load, poisson)


def _draw(
    world: World, fractions: Fractions, first_seed: int, load: float, poisson: bool, rng: np.random.Generator, n: int
) -> Episode:
    return world.draw(SET, fractions, first_seed + int(rng.integers(2**19)), n, load=load, poisson=poisson)


def _factor(rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(-np.log(3.0), np.log(3.0))))


def _slower(rng: np.random.Generator, kind: JobType) -> JobType:
    """Return a type on a slower or faster device, for more or fewer steps, so that it lasts about as long."""
    factor = _factor(rng)
    graph = replace(kind.graph, time=kind.graph.time * factor)
    steps = max(1, round(kind.steps / factor))
    return JobType.of(graph, kind.order, name=kind.name, blocks=kind.blocks, units=kind.units, steps=steps)


def _fractions(rng: np.random.Generator) -> Fractions:
    if rng.random() < 0.7:
        return DISTRIBUTIONS[str(rng.choice(list("AABBBCD")))]
    low, high = np.sort(rng.uniform(0.1, 1.0, 2))
    return Fractions(location=float(low), upper=float(min(1.0, max(high, low + 0.1))))
