"""Quantities over time: of a cluster, GPUs held and there, jobs, jobs that wait; and their means in spans of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..outcome import Outcome
from ..spans import Spans, spans


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What a quantity is from each of k times on; before the first of them it is 0.

    Attributes:
        time: seconds, ascending, no two alike, float64 (k,).
        value: from then until the next time, float64 (k,).
    """

    time: FloatArray
    value: FloatArray

    @classmethod
    def of(cls, time: NDArray[Any], change: NDArray[Any]) -> Steps:
        """Sum up changes, in any order; what changes at infinity does not count."""
        there = np.isfinite(time)
        time, change = time[there], change[there]
        order = np.argsort(time, kind="stable")
        time, value = time[order], np.cumsum(change[order], dtype=np.float64)
        last = np.ones(len(time), dtype=bool)
        last[:-1] = time[1:] != time[:-1]
        return cls(time[last].astype(np.float64), value[last])

    def at(self, times: FloatArray) -> FloatArray:
        """Return the quantity at each of `times`."""
        i = np.searchsorted(self.time, times, side="right")
        return np.asarray(np.concatenate([[0.0], self.value])[i])

    def integral(self, times: FloatArray) -> FloatArray:
        """Return the integral up to each of `times`, in seconds times the unit."""
        if not len(self.time):
            return np.zeros(len(times))
        upto = np.concatenate([[0.0], np.cumsum(self.value[:-1] * np.diff(self.time))])
        i = np.searchsorted(self.time, times, side="right") - 1
        inside = i >= 0
        return np.where(inside, upto[i] + self.value[i] * (times - self.time[i]), 0.0)

    def means(self, edges: FloatArray) -> FloatArray:
        """Return the mean between each edge and the next, float64 (len(edges) - 1,); of no time, 0."""
        long = np.diff(edges)
        over = np.diff(self.integral(edges))
        return np.divide(over, long, out=np.zeros(len(long)), where=long > 0)


def means_of_groups(
    group: NDArray[Any], groups: int, amount: NDArray[Any], start: FloatArray, end: FloatArray, edges: FloatArray
) -> FloatArray:
    """Return what each group holds on average between each edge and the next, float64 (groups, len(edges) - 1).

    A row holds its amount from `start` to `end`, seconds, perhaps infinite; groups count from 0 and edges ascend.
    """
    total = np.zeros((groups, len(edges)))
    for time, sign in ((start, 1.0), (end, -1.0)):
        # held from `time` on, up to an edge t: amount * (t - time)
        at = np.searchsorted(edges, time)
        there = at < len(edges)
        at, where = at[there], group[there]
        for weights, factor in ((amount[there], edges - edges[0]), (amount[there] * (edges[0] - time[there]), 1.0)):
            flat = np.bincount(where * len(edges) + at, weights=weights, minlength=total.size)
            total += sign * factor * np.cumsum(flat.reshape(total.shape), axis=1)
    return np.asarray(np.diff(total, axis=1) / np.diff(edges))


def period(outcome: Outcome) -> tuple[float, float]:
    """Return the time that figures are of: from the first submission to the last finish, seconds."""
    first = float(outcome.workload.submit.min())
    ran = outcome.admitted
    return first, float(outcome.finish[ran].max()) if ran.any() else first


def held_gpus(outcome: Outcome) -> Steps:
    """Return the GPUs held over time, shares added up."""
    amount = outcome.row_gpus * outcome.row_share
    return Steps.of(np.concatenate([outcome.row_start, outcome.row_end]), np.concatenate([amount, -amount]))


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


def waiting_jobs(outcome: Outcome) -> Steps:
    """Return how many jobs wait over time, to start or to go on after they were stopped."""
    begin, end = stints(spans(outcome))
    enter = outcome.workload.submit[outcome.admitted]
    leave = outcome.finish[outcome.admitted]
    time = np.concatenate([enter, end, begin, leave])
    return Steps.of(time, np.repeat([1.0, 1.0, -1.0, -1.0], [len(enter), len(end), len(begin), len(leave)]))


def stints(parts: Spans) -> tuple[FloatArray, FloatArray]:
    """Return when each stint begins and ends, seconds, float64: a job's spans without interruption."""
    opening = np.flatnonzero(parts.opens)
    return parts.start[opening], parts.end[np.append(opening[1:], len(parts.opens)) - 1] if len(opening) else parts.end
