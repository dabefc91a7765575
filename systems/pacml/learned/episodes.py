"""Whole episodes in compiled code: a network decides on one job after the other."""

from __future__ import annotations

import numpy as np

from gangplan.learned.policy.perceptron import Weights, forward
from gangplan.solvers.compiled.kernel import Floats, Ints, kernel

from .features import MOST, SUMS, Scratch, remember, turn_of, write_rows
from .servers import start_job
from .tables import Tables, Times


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
        forward(scratch.row, k, weights, score)
        choice = scratch.choice[np.argmax(score[:k])]
        finish[i] = np.nan
        if choice >= 0:
            finish[i] = start_job(end, now, choice, m, tables, times, scratch.published)
            accepted += 1
    return accepted
