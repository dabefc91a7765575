"""What the jobs so far tell about those to come: a few sums, kept up as they arrive."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

STEPS = np.array([1.0, 2.0, 4.0, 6.0, 8.0, 16.0])
"""Speed-ups; of each, how many jobs so far needed no more."""

_N, _BETA, _BETA2, _WORK, _WORK2, _EFFICIENT, _GAP = range(len(STEPS), len(STEPS) + 7)
SUMS = len(STEPS) + 8
"""Length of the sums."""

CONTEXT = (
    *(f"needs_{step:g}" for step in STEPS), "beta", "spread", "load", "variety", "efficiency_4", "efficiency_16",
    "busy", "size",
)  # fmt: skip
"""What a network sees of them, of the servers that are busy, and of the size of the cluster."""


@kernel
def remember(sums: Any, beta: float, sequential: float, efficiency: Any, gap: float) -> None:
    """Add a job that arrives `gap` after the one before."""
    for k in range(len(STEPS)):
        if 1.0 / beta <= STEPS[k] + 1e-9:
            sums[k] += 1
    sums[_N] += 1
    sums[_BETA] += beta
    sums[_BETA2] += beta * beta
    sums[_WORK] += sequential
    sums[_WORK2] += sequential * sequential
    sums[_EFFICIENT] += efficiency[0]
    sums[_GAP] += gap
    sums[_GAP + 1] += efficiency[1]


@kernel
def turn_of(sums: Any, servers: int) -> float:
    """Return the mean time between arrivals, scaled to 32 servers: a *turn*, the unit of time of all features.

    After the first job alone, which tells none, such that the load would be 1.
    """
    if sums[_N] < 1.5 or sums[_GAP] <= 0:
        return float(sums[_WORK] / sums[_N] / 32.0)
    return float(sums[_GAP] / (sums[_N] - 1.0) * servers / 32.0)


@kernel
def write_context(sums: Any, busy: float, servers: int, turn: float, out: Any) -> None:
    """Write the features named in `CONTEXT`; `busy` is the share of servers that are."""
    n, k = sums[_N], len(STEPS)
    for i in range(k):
        out[i] = (sums[i] + 0.5) / (n + 1.0)
    beta, work = sums[_BETA] / n, sums[_WORK] / n
    out[k] = beta
    out[k + 1] = 2 * np.sqrt(max(sums[_BETA2] / n - beta * beta, 0.0))
    out[k + 2] = min(work / (32.0 * turn), 3.0)
    out[k + 3] = np.sqrt(max(sums[_WORK2] / n - work * work, 0.0)) / work
    out[k + 4] = sums[_EFFICIENT] / n
    out[k + 5] = sums[_GAP + 1] / n
    out[k + 6] = busy
    out[k + 7] = np.log2(servers / 32.0) / 4
