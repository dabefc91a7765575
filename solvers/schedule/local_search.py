"""Simulated annealing over the list and the degrees: a job goes elsewhere in the list, or changes its degree.

A changed list is decoded from its first change on, and only for as long as it may be accepted.
"""

from __future__ import annotations

import time

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run
from .annealing import ListWalk, anneal, restart
from .classic import best_list
from .decode import Decoder, list_of, made_of
from .kernels import Data, Room, Schedule
from .prepare import PreparedJobs

_FIRST, _LAST = 0.01, 0.0004
"""Temperatures, as shares of the goal over the jobs."""
_STEPS = 300
"""Changes of the first annealing; each one after has twice as many."""
_STALL = 4
"""Annealings without a better schedule after which a problem is left."""
_LOOK = 0.004
"""Seconds between two looks at the clock."""
_MOST = 400_000_000
"""Jobs times jobs times nodes of a list at most."""
_SAVED, _BYTES = 16, 6e7
"""Places of a list before which the profiles are kept, fewer where they would take more than so many bytes."""


def local_search(run: Run, p: PreparedJobs) -> None:
    """Anneal from the best plan known, again and again until nothing better is found."""
    if run.stopped or run.plan is None or p.n * p.n * p.nodes > _MOST:
        return
    rng, search = np.random.default_rng(run.seed), _ListSearch(run, p)
    best, steps, stall, rate = search.restart(), _STEPS, 0, 0.0
    while best < np.inf and not search.late() and stall < _STALL:
        before, i, started = best, 0, time.perf_counter()
        if rate and rate * run.remaining() < 3 * steps:
            steps = max(1, int(rate * run.remaining()))  # the last one ends when the time does
        unit = (best or 1.0) / p.n
        while i < steps and not search.late():
            few = max(1, min(steps - i, int(rate * _LOOK)))
            hot = unit * _FIRST * (_LAST / _FIRST) ** (np.arange(i, i + few) / steps)
            best = search.step(best, hot, rng.random((few, 5)))
            i += few
            rate = i / max(time.perf_counter() - started, 1e-6)
        search.offer(best)
        search.restart()
        stall = 0 if best < before * (1 - 1e-9) else stall + 1
        steps *= 2


class _ListSearch:
    def __init__(self, run: Run, p: PreparedJobs) -> None:
        self._run, self._p, self._decoder = run, p, Decoder(p)
        starts, data = [list_of(p, run.plan.degree, run.plan.start)], Data(p)
        if p.kind:  # another order of the same starts takes other nodes
            _, order, wish, penalty = best_list(p, lambda: run.stopped)
            self._decoder.decode(order, wish, penalty)
            starts.append((order, self._decoder.made.option.copy()))
        order, wish = min(starts, key=lambda lists: self._decoder.decode(*lists))
        kept = max(1, min(_SAVED, p.n, int(_BYTES / (64 * p.nodes * (p.n + 1)))))
        self._walk = ListWalk(data, order, wish, kept)
        self._given = data, Room(p), Schedule(data, *made_of(p)), self._walk, np.zeros(len(p.gpus))
        self._offered, self._takes = np.inf, 0.0

    def late(self) -> bool:
        return self._run.stopped or self._run.remaining() < 1.5 * self._takes

    def step(self, best: float, hot: FloatArray, draws: FloatArray) -> float:
        return anneal(*self._given, best, hot, draws)

    def restart(self) -> float:
        return restart(*self._given)

    def offer(self, best: float) -> None:
        if best < self._offered:
            started, self._offered = time.perf_counter(), best
            self._decoder.offer(self._run, "local_search", self._walk.best_order, self._walk.best_wish)
            self._takes = time.perf_counter() - started
