"""Sampled futures, as far as a policy can know: arrivals drawn from the past, durations as expected."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.solvers.compiled.kernel import Ints

from .arrays import ARRIVED, NOW, RUNNING, WAITING, Jobs, State


def future(jobs: Jobs, state: State, rng: np.random.Generator, *, ahead: int) -> tuple[Jobs, State, Ints]:
    """Return the jobs that are present with `ahead` more, their state, and which jobs the present ones are.

    Nothing is read of jobs that have not arrived, nor of true durations.

    Args:
        jobs: all jobs; of the present ones the expected durations count.
        state: now.
        rng: draws the future.
        ahead: how many jobs arrive, a stretch of those that have arrived.
    """
    now, waiting, running = float(state.clock[NOW]), state.count[WAITING], state.count[RUNNING]
    present = np.sort(np.concatenate([state.queue[:waiting], state.running[:running]]))
    gap, come = _stretch(jobs, int(state.count[ARRIVED]), ahead, rng)
    expected = np.concatenate([jobs.expected[present], jobs.expected[come]])
    gpus = np.concatenate([jobs.gpus[present], jobs.gpus[come]])
    intensity = np.concatenate([jobs.intensity[present], jobs.intensity[come]])
    submit = np.concatenate([jobs.submit[present], now + np.cumsum(gap)])
    slower = 1 + jobs.intensity[present] * state.cost[present]
    runs = np.isfinite(state.start[present])
    table = Jobs(submit, expected, expected, gpus, intensity, np.append(0, np.cumsum(gpus)))
    return table, _state(table, state, present, runs, slower), present


def _stretch(history: Jobs, n: int, ahead: int, rng: np.random.Generator) -> tuple[FloatArray, Ints]:
    """Return the seconds between arrivals, and which of the n jobs arrive, from a random one on and around."""
    come = (int(rng.integers(max(n, 1))) + np.arange(ahead if n > 1 else 0)) % max(n, 1)
    gaps = np.diff(history.submit[:n])
    return np.append(gaps.mean() if len(gaps) else 0.0, gaps)[come], come


def _state(table: Jobs, state: State, present: Ints, runs: BoolArray, slower: FloatArray) -> State:
    """Return the state of the jobs of `table`, of which the first ones are those present."""
    n, now = len(table.submit), float(state.clock[NOW])
    start, finish, cost = np.full(n, np.inf), np.full(n, np.inf), np.zeros(n)
    running = np.flatnonzero(runs)
    start[running], cost[running] = state.start[present[running]], state.cost[present[running]]
    # who has run longer than expected is about to end
    finish[running] = np.maximum(now, start[running] + table.work[running] * slower[running])
    holder, held = np.full(len(state.holder), -1), np.zeros(int(table.first[-1]), dtype=np.int64)
    place = np.full(len(state.start), -1)
    place[present] = np.arange(len(present))
    busy = state.holder >= 0
    holder[busy] = place[state.holder[busy]]
    gpus = np.flatnonzero(busy)
    gpus = gpus[np.argsort(holder[gpus], kind="stable")]
    rows = np.concatenate([np.arange(table.first[j], table.first[j + 1]) for j in running] or [gpus])
    held[rows] = gpus
    heap, queue = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    heap[: len(running)] = running[np.argsort(finish[running], kind="stable")]
    waiting = np.flatnonzero(~runs)
    queue[: len(waiting)] = waiting
    count = np.array([len(present), len(waiting), len(running)])
    return State(
        np.array([now]), count, queue, heap, state.free.copy(), holder, held, start, finish, -finish, cost
    )  # fmt: skip
