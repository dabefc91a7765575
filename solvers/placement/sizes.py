"""Which batches the exact methods are for; kept apart from these, which take a second to import."""

from __future__ import annotations

from .prepare import Batch

_LARGE = 20_000
"""Nodes beyond which nothing is ruined and recreated."""
_CPSAT = 200_000
"""Pairs of jobs, times nodes."""
_WORKERS = 500
"""Of all jobs, as far as one node holds them: with more, no search for columns ends within a minute."""


def suits_cpsat(batch: Batch) -> bool:
    """Return whether a model with every pair of jobs on every node is of a size worth building."""
    return len(batch.jobs) ** 2 * batch.n_nodes <= _CPSAT


def suits_local_search(batch: Batch) -> bool:
    """Return whether the cluster is small enough to look at all of it for each gang."""
    return batch.n_nodes <= _LARGE


def suits_patterns(batch: Batch) -> bool:
    """Return whether patterns say all there is: slowdown, rigid gangs of whole GPUs, none running, NICs plain."""
    return (
        batch.problem.goal == "slowdown"
        and not batch.pinned
        and not batch.standing
        and not batch.reserves
        and batch.even
        and all(len(job.workers) == 1 for job in batch.jobs)
        and bool((batch.share[batch.each > 0] == 1).all())
        and int(batch.room.max(axis=1).sum()) <= _WORKERS
    )
