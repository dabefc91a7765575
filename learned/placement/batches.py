"""The batches that the policy is trained and validated on, by seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.generators.families import make, seed_of
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import PlacementProblem
from gangplan.solvers import Run
from gangplan.solvers.placement.methods import SUITE
from gangplan.solvers.placement.prepare import Batch

SMALL = 16
"""Nodes of the batches that are labelled, at most."""
PER_RACK = (4, 8, 16)


def small(split: str, index: int) -> PlacementProblem:
    """Return a batch for 8 to 16 nodes, as exact labels have it: in half of the cases jobs run already."""
    made = make("placement", "gangs", seed_of(split, index), SMALL)
    assert isinstance(made, PlacementProblem)
    return made


def sized(split: str, index: int, nodes: int, jobs: float | None = None, **options: Any) -> PlacementProblem:
    """Return a batch for about so many nodes, in racks of 4, 8 or 16.

    Args:
        split: whose seed.
        index: of it.
        nodes: about how many.
        jobs: a node; drawn from 1/2 to 2 by default.
        options: of `gangplan.instances.generators.gangs.gangs`, instead of what is drawn.
    """
    seed = seed_of(split, index)
    rng = np.random.default_rng([*b"placement", nodes, seed])
    rack = int(rng.choice([x for x in PER_RACK if x <= nodes]))
    racks = max(1, round(nodes / rack))
    ratio = float(np.exp(rng.uniform(np.log(0.5), np.log(2.0)))) if jobs is None else jobs
    drawn: dict[str, Any] = {
        "racks": racks,
        "nodes": rack,
        "gpus": int(rng.choice([4, 8])),
        "jobs": max(2, round(ratio * racks * rack)),
        "load": float(rng.uniform(0.6, 0.95)),
        "running": float(rng.choice([0.0, 0.0, 0.3])),
        "optional": float(rng.choice([0.0, 0.0, 0.2])),
    }
    return gangs(**{**drawn, **options}, seed=seed)


def prepared(problem: PlacementProblem) -> Batch | None:
    """Return a batch as the methods see it; `None` if it plainly has no placement."""
    from gangplan.solvers.placement.impossible import impossible

    batch = Batch(problem)
    return None if impossible(batch) is not None else batch


def bounded(problem: PlacementProblem) -> tuple[Batch, float]:
    """Return a batch and the bound on its cost that the methods start from."""
    run = Run(problem, time_limit=600.0)
    batch: Batch = SUITE.prepare(run)
    return batch, run.bound or 0.0
