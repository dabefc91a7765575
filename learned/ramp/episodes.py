"""Whole episodes in compiled code: a network decides on one job after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Floats, Ints, kernel

from .features import MOST, SUMS, Scratch, Singles, Singles2, remember, turn_of, write_rows
from .servers import start_job
from .tables import Tables, Times


class Weights(NamedTuple):
    """A network for k job types, see `gangplan.learned.ramp.network.Network`; w is its width.

    Attributes:
        first: of the features of a row, float32 (WIDTH, w).
        offset: what each job type adds to the first layer, with its bias, float32 (k, w).
        hidden: float32 (w, w).
        bias: of the hidden layer, float32 (w,).
        last: float32 (w,).
    """

    first: Singles2
    offset: Singles2
    hidden: Singles2
    bias: Singles
    last: Singles


@kernel
def forward(rows: Singles2, k: int, weights: Weights, kind: int, out: Singles) -> None:
    """Write the scores of k rows for a job type."""
    x = np.dot(rows[:k], weights.first)
    for i in range(k):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j] + weights.offset[kind, j], np.float32(0))
    y = np.dot(x, weights.hidden)
    for i in range(k):
        total = np.float32(0)
        for j in range(y.shape[1]):
            total += max(y[i, j] + weights.bias[j], np.float32(0)) * weights.last[j]
        out[i] = total


@kernel
def run_episode(
    kind: Ints, beta: Floats, gap: Floats, tables: Tables, times: Times, weights: Weights, scratch: Scratch,
    finish: Floats,
) -> int:  # fmt: skip
    """Play a case by the best score, write each job's completion (nan: blocked), and return how many were accepted.

    Args:
        kind: type of each job, int64 (n,).
        beta: acceptable share of its sequential time, float64 (n,).
        gap: time since the job before, float64 (n,).
        tables, times: of the cluster and of the types.
        weights: of the network.
        scratch: of the cluster.
        finish: is written, float64 (n,).
    """
    end, sums, score = np.zeros(tables.n), np.zeros(SUMS), np.zeros(MOST, np.float32)
    now, accepted = 0.0, 0
    end[:] = -1.0
    for i in range(len(kind)):
        now += gap[i]
        m = kind[i]
        remember(sums, beta[i], times.sequential[m], times.efficiency[m], gap[i])
        k = write_rows(end, now, turn_of(sums, tables.n), tables, times, m, beta[i], sums, scratch)
        forward(scratch.row, k, weights, m, score)
        choice = scratch.choice[np.argmax(score[:k])]
        finish[i] = np.nan
        if choice >= 0:
            finish[i] = start_job(end, now, choice, m, tables, times, scratch.published)
            accepted += 1
    return accepted
