"""Judges the policy on test batches, each beside the greedy heuristic that it starts from."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from .batches import bounded, sized, small
from .decode import Decoder
from .policy import PlacementPolicy


def evaluate(
    policy: PlacementPolicy, seeds: Iterable[int], *, nodes: int = 0, samples: int = 16
) -> list[dict[str, Any]]:
    """Return a row a batch: nodes, jobs, the bound, and costs and milliseconds of each way to decide.

    Args:
        policy: the learned one.
        seeds: by index among those of the test split.
        nodes: about how many; 0 for batches of 8 to 16.
        samples: placements that are drawn besides the greedy one.
    """
    rows = []
    for index in seeds:
        problem = sized("test", index, nodes) if nodes else small("test", index)
        batch, bound = bounded(problem)
        greedy = Decoder(None, batch).place()
        start = time.perf_counter()
        decoder = Decoder(policy, batch)
        cost = decoder.place()
        spent = time.perf_counter() - start
        rng = np.random.default_rng(index)
        drawn = [decoder.place(rng, policy.settings.noise, policy.settings.order_noise) for _ in range(samples)]
        best = min((x for x in [cost, *drawn] if x is not None), default=None)
        rows.append({
            "seed": index, "nodes": batch.n_nodes, "jobs": len(batch.jobs), "bound": bound, "greedy": greedy,
            "learned": cost, "sampled": best, "ms": round(1e3 * spent, 2),
        })  # fmt: skip
    return rows
