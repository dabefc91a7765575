"""Where GPUs are held: free ones that are of no use to the jobs of the trace, and what gangs pay for being apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, distinct, sums
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.rate import pair_costs

from ..outcome import Outcome
from ..spans import Spans, spans
from .series import Steps, period


def fragmentation(outcome: Outcome) -> float | None:
    """Return the share of the free GPUs that cannot serve a job of the trace's mix: its mean while GPUs are free.

    None if GPUs were only counted. If GPUs are never free, it is 0. See `fragments`.
    """
    if (outcome.row_node < 0).any():
        return None
    free, useless = fragments(outcome)
    first, last = period(outcome)
    edges = np.clip(np.append(free.time, last), first, last)
    some = free.value > 0
    long = np.diff(edges)[some]
    total = float(long.sum())
    return float((useless.value[some] / free.value[some] * long).sum()) / total if total > 0 else 0.0


def fragments(outcome: Outcome) -> tuple[Steps, Steps]:
    """Return the free GPUs over time, and those of them that a job of the trace's mix cannot use on average.

    The measure is FGD's (Weng et al., ATC 2023), of whole GPUs: to a job that asks for g GPUs, those free on a node are
    useless if they are fewer than g, or than the largest node has if g is more than that. The mix is that of all jobs
    of the trace. A GPU is free if nothing is on it; nodes that are down have none. Both have the same times, from the
    first submission on.
    """
    first, _ = period(outcome)
    room = outcome.room.astype(np.int64)
    largest = int(room.max())
    asked = np.bincount(np.minimum(outcome.workload.gpus, largest), minlength=largest + 1) / outcome.workload.n_jobs
    amount = np.arange(largest + 1)
    useless = amount * (1 - np.cumsum(asked))  # of so many free GPUs of a node: too few for those that ask for more

    node, gpus, start, end = _whole(outcome)
    down, lost = outcome.down_node.astype(np.int64), room[outcome.down_node]
    where = np.concatenate([np.arange(len(room)), node, node, down, down])
    when = np.concatenate([np.full(len(room), first), start, end, outcome.down_start, outcome.down_end])
    change = np.concatenate([room, -gpus, gpus, -lost, lost])
    order = np.lexsort((-change, np.maximum(when, first), where))
    where, when, change = where[order], np.maximum(when, first)[order], change[order]
    total = np.cumsum(change)
    opening = np.searchsorted(where, np.arange(len(room)))
    before = np.concatenate([[0], total])[opening]  # what the nodes before this one are left with
    left = total - np.repeat(before, np.diff(np.append(opening, len(where))))
    # of one instant only the last is a state: the others are between two that change at once, and add up to it
    known = useless[np.clip(left, 0, largest)]
    step = np.diff(known, prepend=0.0)
    step[opening] = known[opening]
    return Steps.of(when, change), Steps.of(when, step)


def _whole(o: Outcome) -> tuple[NDArray[Any], NDArray[Any], FloatArray, FloatArray]:
    """Return node, GPUs, start and end of what is held: a GPU that jobs share as long as one of them is there."""
    told = o.row_gpu >= 0
    if not told.any():
        return o.row_node.astype(np.int64), o.row_gpus.astype(np.int64), o.row_start, o.row_end
    most = int(o.room.max())
    card = (o.row_node.astype(np.int64) * most + o.row_gpu)[told]
    count = len(card)
    time = np.concatenate([o.row_start[told], o.row_end[told]])
    sign = np.repeat([1, -1], count)
    order = np.lexsort((-sign, time, np.concatenate([card, card])))
    on = np.cumsum(sign[order])
    begins, ends = order[(on == 1) & (sign[order] == 1)], order[on == 0] - count
    rest = ~told
    node = np.concatenate([card[begins] // most, o.row_node[rest]])
    gpus = np.concatenate([np.ones(len(begins), dtype=np.int64), o.row_gpus[rest]])
    start = np.concatenate([time[begins], o.row_start[rest]])
    return node, gpus, start, np.concatenate([o.row_end[told][ends], o.row_end[rest]])


def communication(outcome: Outcome, fleet: Fleet, parts: Spans | None = None) -> float | None:
    """Return TopDRL's communication cost of a running job, the mean over time; None if GPUs were only counted."""
    if (outcome.row_node < 0).any():
        return None
    if fleet.n_nodes != len(outcome.room):
        raise InstanceError("fleet", f"has {fleet.n_nodes} nodes, the schedule is of {len(outcome.room)}")
    parts = spans(outcome) if parts is None else parts
    long = parts.end - parts.start
    total = float(long.sum())
    return float((costs(outcome, fleet, parts) * long).sum()) / total if total > 0 else 0.0


def costs(outcome: Outcome, fleet: Fleet, parts: Spans) -> FloatArray:
    """Return the communication cost of each span, float64 (s,): see `gangplan.instances.placement.rate`."""
    count = len(parts.job)
    span = np.repeat(np.arange(count), np.diff(np.append(parts.first, len(parts.row))))
    node, gpus = outcome.row_node[parts.row].astype(np.int64), outcome.row_gpus[parts.row]
    (span, node), index, _ = distinct(span, node)  # rows of one node may tell its GPUs apart
    return pair_costs(fleet, span, node, sums(index, gpus, len(span)), count)
