"""What interruptions cost: progress since the last checkpoint, and the seconds to restore a job."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify.verdict import time_slack

from .outcome import Outcome
from .spans import Spans


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
    """Return the stints that a failure of one of their nodes ended."""
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
