"""What goes on in a cluster over time: GPUs held, GPUs there are, jobs, jobs that wait."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray

from ..trace.outcome import Outcome
from ..trace.spans import Spans, spans
from .steps import Steps


def period(outcome: Outcome) -> tuple[float, float]:
    """Return the time that figures are of: from the first submission to the last finish, seconds."""
    first = float(outcome.workload.submit.min())
    ran = outcome.admitted
    return first, float(outcome.finish[ran].max()) if ran.any() else first


def held_gpus(outcome: Outcome, rows: BoolArray | None = None) -> Steps:
    """Return the GPUs held over time, shares added up, by `rows`, bool (r,), or by all."""
    pick = slice(None) if rows is None else rows
    amount = (outcome.row_gpus * outcome.row_share)[pick]
    start, end = outcome.row_start[pick], outcome.row_end[pick]
    return Steps.of(np.concatenate([start, end]), np.concatenate([amount, -amount]))


def available_gpus(outcome: Outcome) -> Steps:
    """Return the GPUs there are over time, from the first submission on: those of nodes that are not down."""
    first, _ = period(outcome)
    lost = outcome.room[outcome.down_node]
    begin, end = np.maximum(outcome.down_start, first), np.maximum(outcome.down_end, first)
    return Steps.of(np.concatenate([[first], begin, end]), np.concatenate([[outcome.n_gpus], -lost, lost]))


def present_jobs(outcome: Outcome) -> Steps:
    """Return how many jobs are in the system over time, those that wait and those that run; rejected ones never are."""
    ran = outcome.admitted
    enter, leave = outcome.workload.submit[ran], outcome.finish[ran]
    return Steps.of(np.concatenate([enter, leave]), np.repeat([1.0, -1.0], len(enter)))


def waiting_jobs(outcome: Outcome, parts: Spans | None = None) -> Steps:
    """Return how many jobs wait over time, to start or to go on after they were stopped."""
    begin, end = stints(spans(outcome) if parts is None else parts)
    enter = outcome.workload.submit[outcome.admitted]
    leave = outcome.finish[outcome.admitted]
    time = np.concatenate([enter, end, begin, leave])
    return Steps.of(time, np.repeat([1.0, 1.0, -1.0, -1.0], [len(enter), len(end), len(begin), len(leave)]))


def stints(parts: Spans) -> tuple[FloatArray, FloatArray]:
    """Return when each stint begins and ends, seconds, float64: a job's spans without interruption."""
    opening = np.flatnonzero(parts.opens)
    return parts.start[opening], parts.end[np.append(opening[1:], len(parts.opens)) - 1] if len(opening) else parts.end
