"""Judges the policy on test batches, each beside the greedy heuristic that it starts from."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from .batches import bounded, sized, small
from .decode import Decoder
from .policy import PlacementPolicy


def evaluate(policy: PlacementPolicy, seeds: Iterable[int], *, nodes: int = 0) -> list[dict[str, Any]]:
    """Return a row a batch: nodes, jobs, the bound, what it costs placed by each, and milliseconds.

    Args:
        policy: the learned one.
        seeds: by index among those of the test split.
        nodes: about how many; 0 for batches of 8 to 16.
    """
    rows = []
    for index in seeds:
        problem = sized("test", index, nodes) if nodes else small("test", index)
        batch, bound = bounded(problem)
        greedy = Decoder(None, batch).place()
        start = time.process_time()
        decoder = Decoder(policy, batch)
        placed = decoder.place()
        spent = time.process_time() - start
        rows.append({
            "seed": index, "nodes": batch.n_nodes, "jobs": len(batch.jobs), "bound": bound, "greedy": greedy,
            "placed": placed, "ms": round(1e3 * spent, 2),
        })  # fmt: skip
    return rows
