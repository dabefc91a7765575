"""What may come, as far as a policy can know: jobs drawn from the past, durations drawn about those expected."""

from __future__ import annotations

from math import exp, log
from statistics import NormalDist

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.solvers.compiled.kernel import Ints

from .arrays import ARRIVED, NOW, RUNNING, WAITING, Jobs, State

_NEVER = 1 - 1e-12


def future(
    jobs: Jobs, state: State, rng: np.random.Generator, *, ahead: int, history: Jobs | None = None, spread: float = 0.0
) -> tuple[Jobs, State, Ints]:
    """Return the jobs that are present with `ahead` more, their state, and which jobs the present ones are.

    Nothing is read of jobs that have not arrived, nor of true durations.

    Args:
        jobs: all jobs; of the present ones the expected durations count.
        state: now.
        rng: draws the future.
        ahead: how many jobs arrive.
        history: a stretch of these jobs arrives, by default of those that have arrived.
        spread: standard deviation of the logarithm of a duration; 0 if durations are as expected.
    """
    now, waiting, running = float(state.clock[NOW]), state.count[WAITING], state.count[RUNNING]
    present = np.sort(np.concatenate([state.queue[:waiting], state.running[:running]]))
    arrived = int(state.count[ARRIVED])
    gap, come, source = _stretch(jobs if history is None else history, arrived if history is None else None, ahead, rng)
    expected = np.concatenate([jobs.expected[present], source.expected[come]])
    gpus = np.concatenate([jobs.gpus[present], source.gpus[come]])
    intensity = np.concatenate([jobs.intensity[present], source.intensity[come]])
    submit = np.concatenate([jobs.submit[present], now + np.cumsum(gap)])
    slower = 1 + jobs.intensity[present] * state.cost[present]
    runs = np.isfinite(state.start[present])
    done = np.where(runs, now - np.where(runs, state.start[present], 0.0), 0.0) / slower
    done = np.append(done, np.zeros(len(come)))
    work = expected if spread == 0 else _durations(expected, done, spread, rng)
    table = Jobs(submit, work, expected, gpus, intensity, np.append(0, np.cumsum(gpus)))
    return table, _state(table, state, present, runs, slower), present


def _stretch(history: Jobs, n: int | None, ahead: int, rng: np.random.Generator) -> tuple[FloatArray, Ints, Jobs]:
    """Return the seconds between arrivals, and which jobs of the history arrive, from a random one on and around."""
    n = len(history.submit) if n is None else n
    if n < 2:
        ahead = 0
    come = (int(rng.integers(max(n, 1))) + np.arange(ahead)) % max(n, 1)
    gaps = np.diff(history.submit[:n])
    gaps = np.append(gaps.mean() if len(gaps) else 0.0, gaps)
    return gaps[come], come, history


def _durations(expected: FloatArray, done: FloatArray, spread: float, rng: np.random.Generator) -> FloatArray:
    """Draw lognormal durations with these means, each longer than what is done of it."""
    normal, drawn = NormalDist(), np.empty(len(expected))
    for i, u in enumerate(rng.random(len(done)).tolist()):
        mean, past = float(expected[i]), float(done[i])
        least = 0.0 if past <= 0 or mean <= 0 else normal.cdf((log(past / mean) + spread**2 / 2) / spread)
        z = normal.inv_cdf(min(max(least + u * (1 - least), 1 - _NEVER), _NEVER))
        drawn[i] = max(past, mean * exp(spread * z - spread**2 / 2))
    return drawn


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
