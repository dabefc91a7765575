"""Spans, what a job holds over one time at one rate; stints, its spans on end; and what interruptions cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.verify.verdict import time_slack

from .outcome import Outcome

Long = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Spans of all jobs by job and time, s of them.

    Attributes:
        row: rows in the order of their spans, int64 (r,).
        first: where the rows of each span begin in `row`, int64 (s,).
        start, end, rate: float64 (s,).
        gpus: GPUs held, int64 (s,).
        opens: whether the span begins a stint: the job did not hold the same GPUs just before, bool (s,).
        even: whether the rows of the span agree in their end and rate, bool (s,).
    """

    row: Long
    first: Long
    job: Long
    start: FloatArray
    end: FloatArray
    rate: FloatArray
    gpus: Long
    opens: BoolArray
    even: BoolArray


def spans(outcome: Outcome) -> Spans:
    """Return the spans of an outcome."""
    job, start = outcome.row_job, outcome.row_start
    row = np.arange(len(job))
    same = job[1:] == job[:-1]
    if not ((job[1:] > job[:-1]) | (same & (start[1:] >= start[:-1]))).all():
        row = np.lexsort((start, job))
        job, start = job[row], start[row]
        same = job[1:] == job[:-1]
    new = np.ones(len(row), dtype=bool)
    new[1:] = ~same | (start[1:] != start[:-1])
    first = np.flatnonzero(new)
    end, rate = outcome.row_end[row], outcome.row_rate[row]
    if len(first) == len(row):
        even = np.ones(len(row), dtype=bool)
    else:
        of = np.cumsum(new) - 1
        even = np.ones(len(first), dtype=bool)
        even[of[(end != end[first][of]) | (rate != rate[first][of])]] = False
    gpus = _sums(outcome.row_gpus[row].astype(np.int64), first)
    at = job[first].astype(np.int64)
    opens = np.ones(len(first), dtype=bool)
    again = at[1:] == at[:-1]
    if again.any():
        held = _sums(_marks(outcome, row), first)
        opens[1:] = ~(again & (start[first][1:] == end[first][:-1]) & (held[1:] == held[:-1]))
        # who is there again after an outage of no length has begun anew
        downs = set(zip(outcome.down_node.tolist(), outcome.down_start.tolist(), strict=True))
        there = np.flatnonzero(np.isin(start, outcome.down_start))
        failed = [
            i
            for i, node in zip(there.tolist(), outcome.row_node[row[there]].tolist(), strict=True)
            if (node, float(start[i])) in downs
        ]
        opens[np.searchsorted(first, failed, side="right") - 1] = True
    return Spans(row, first, at, start[first], end[first], rate[first], gpus, opens, even)


def _sums(values: NDArray[Any], first: Long) -> NDArray[Any]:
    if len(first) == len(values):
        return values
    return np.add.reduceat(values, first)


def _marks(outcome: Outcome, row: Long) -> NDArray[np.uint64]:
    """Return a number for each row whose sums tell sets of GPUs apart."""
    place = (outcome.row_node[row].astype(np.int64) + 1 << 20) + outcome.row_gpu[row] + 1
    mixed = place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return np.asarray(mixed * outcome.row_gpus[row].astype(np.uint64))


def restarts(outcome: Outcome, parts: Spans) -> tuple[FloatArray, list[str]]:
    """Return the work that failures took from each job, float64 (n,), and what is wrong with its restarts, in words."""
    lost = np.zeros(outcome.workload.n_jobs)
    if len(parts.job) == np.count_nonzero(outcome.admitted) and (parts.rate > 0).all():
        return lost, []
    stint = np.cumsum(parts.opens) - 1
    opening = np.flatnonzero(parts.opens)
    idle = np.bincount(stint, weights=np.where(parts.rate == 0, parts.end - parts.start, 0.0))
    last = np.append(opening[1:], len(stint)) - 1
    whole = parts.end[last] - parts.start[opening]
    job = parts.job[opening]
    first = np.ones(len(opening), dtype=bool)
    first[1:] = job[1:] != job[:-1]
    due = np.where(first, 0.0, np.minimum(outcome.cost, whole))
    slack = time_slack(due, parts.end[last])
    late = parts.opens[1:] | (parts.rate[1:] > 0) | (parts.rate[:-1] == 0)  # no job is restored once it got on
    wrong = [
        f"job {outcome.workload.names[j]} is restored for {spent:.6g} s, not {wanted:.6g}"
        for j, spent, wanted, bad in zip(job, idle, due, np.abs(idle - due) > slack, strict=True)
        if bad
    ]
    wrong += [f"job {outcome.workload.names[j]} stands still" for j in parts.job[1:][~late]]
    for k in _broken(outcome, parts, last).tolist():
        lost[job[k]] += _since_checkpoint(outcome, parts, int(opening[k]), int(last[k]))
    return lost, wrong


def _broken(o: Outcome, s: Spans, last: np.ndarray) -> np.ndarray:
    if not len(o.down_node):
        return np.zeros(0, dtype=np.int64)
    downs = {(node, time) for node, time in zip(o.down_node.tolist(), o.down_start.tolist(), strict=True)}
    times = np.unique(o.down_start)
    suspects = np.flatnonzero(np.isin(s.end[last], times) & (s.end[last] < o.finish[s.job[last]]))
    found = []
    for k in suspects.tolist():
        span = int(last[k])
        stop = s.first[span + 1] if span + 1 < len(s.first) else len(s.row)
        nodes = o.row_node[s.row[s.first[span] : stop]].tolist()
        if any((node, float(s.end[span])) in downs for node in nodes):
            found.append(k)
    return np.array(found, dtype=np.int64)


def _since_checkpoint(o: Outcome, s: Spans, opening: int, last: int) -> float:
    begun, ended = float(s.start[opening]), float(s.end[last])
    kept_until = begun
    if np.isfinite(o.interval):
        kept_until = ended if o.interval == 0 else begun + np.floor((ended - begun) / o.interval) * o.interval
    part = slice(opening, last + 1)
    after = np.maximum(s.end[part] - np.maximum(s.start[part], kept_until), 0.0)
    return float((s.rate[part] * after).sum())
