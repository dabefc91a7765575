"""Whole episodes in compiled code: a network, or a table of values, decides on one job after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

from .candidates import MOST
from .history import SUMS, remember, turn_of
from .rows import write_rows


@kernel
def forward(rows: Any, k: int, weights: Any, kind: int, out: Any) -> None:
    """Write the scores of k rows; see `gangplan.learned.ramp.network.Network`."""
    first, offset, hidden, bias, last = weights
    x = np.dot(rows[:k], first)
    for i in range(k):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j] + offset[kind, j], np.float32(0))
    y = np.dot(x, hidden)
    for i in range(k):
        total = np.float32(0)
        for j in range(y.shape[1]):
            total += max(y[i, j] + bias[j], np.float32(0)) * last[j]
        out[i] = total


@kernel
def hold(end: Any, block: int, until: float, tables: Any) -> None:
    """Let the servers of a block be held until then."""
    for i in range(tables.size[block]):
        end[tables.servers[block, i]] = until


@kernel
def play(kind: Any, beta: Any, gap: Any, tables: Any, menus: Any, weights: Any, desk: Any, finish: Any) -> int:
    """Play a case by the best score, write each job's completion (nan: blocked), and return how many were accepted.

    Args:
        kind: type of each job, int64 (n,).
        beta: acceptable share of its sequential time, float64 (n,).
        gap: time since the job before, float64 (n,).
        tables, menus: of the cluster and of the types.
        weights: of the network.
        desk: of the cluster.
        finish: is written, float64 (n,).
    """
    end, sums, score = np.zeros(tables.n), np.zeros(SUMS), np.zeros(MOST, np.float32)
    now, accepted = 0.0, 0
    end[:] = -1.0
    for i in range(len(kind)):
        now += gap[i]
        m = kind[i]
        remember(sums, beta[i], menus.sequential[m], menus.efficiency[m], gap[i])
        turn = turn_of(sums, tables.n)
        k = write_rows(end, now, turn, tables, menus.jct[m], menus.sequential[m], beta[i], sums, desk)
        forward(desk.row, k, weights, m, score)
        block = desk.block[np.argmax(score[:k])]
        finish[i] = np.nan
        if block >= 0:
            finish[i] = now + menus.jct[m, tables.shape[block]]
            hold(end, block, finish[i], tables)
            accepted += 1
    return accepted
