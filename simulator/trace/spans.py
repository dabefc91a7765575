"""Rows put together: a span is what a job holds over one time at one rate, a stint its spans without interruption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray

from .outcome import Outcome

Long = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Spans of all jobs by job and time, s of them.

    Attributes:
        row: rows in the order of their spans, int64 (r,).
        first: where the rows of each span begin in `row`, int64 (s,).
        job: int64 (s,).
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
