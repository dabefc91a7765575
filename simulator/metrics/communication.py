"""What gangs pay for being apart, while they run."""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, sums
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.communication import pair_seconds, pairs

from ..trace.outcome import Outcome
from ..trace.spans import Spans, spans


def communication(outcome: Outcome, fleet: Fleet, parts: Spans | None = None) -> float | None:
    """Return the mean communication cost of a running job: TopDRL's, weighted by the time that it is paid.

    None if GPUs were only counted.

    Raises:
        InstanceError: if `fleet` has another number of nodes.
    """
    if (outcome.row_node < 0).any():
        return None
    if fleet.n_nodes != len(outcome.room):
        raise InstanceError("fleet", f"has {fleet.n_nodes} nodes, the schedule is of {len(outcome.room)}")
    parts = spans(outcome) if parts is None else parts
    long = parts.end - parts.start
    total = float(long.sum())
    return float((costs(outcome, fleet, parts) * long).sum()) / total if total > 0 else 0.0


def costs(outcome: Outcome, fleet: Fleet, parts: Spans) -> FloatArray:
    """Return the communication cost of each span, float64 (s,): over its pairs of GPUs, the seconds of a gigabyte.

    See `gangplan.instances.placement.communication`, whose cost of a job this is.
    """
    count = len(parts.job)
    span = np.repeat(np.arange(count), np.diff(np.append(parts.first, len(parts.row))))
    node, gpus = outcome.row_node[parts.row].astype(np.int64), outcome.row_gpus[parts.row]
    m = np.int64(fleet.n_nodes)
    at, index = np.unique(span * m + node, return_inverse=True)  # rows of one node may tell its GPUs apart
    held = sums(index, gpus, len(at))
    span, node = at // m, at % m
    inside, across = pair_seconds(fleet)
    cost = sums(span, inside[node] * pairs(held), count)
    below = sums(span, pairs(held), count)
    for seconds, group in zip(across, fleet.topology.group, strict=True):
        keys, index = np.unique(span * m + group[node], return_inverse=True)
        within = sums(keys // m, pairs(sums(index, held, len(keys))), count)
        cost += seconds * (within - below)
        below = within
    return cost
