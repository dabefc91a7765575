"""Place all that waits at an interval jointly: greedy in several orders of the jobs, the best of which is done."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import require_number
from gangplan.simulator.snapshots import Truth

from ...interference.environment import Environment
from ...interference.greedy import Greedy

TRIES, SPREAD, DELAY = 8, 0.5, 2.0
"""Orders that are tried; deviation of the logarithm of lengths by which they differ; intervals that a job is expected
to wait if it does not start."""


class Joint(Greedy):
    """Takes the order with the least sum of remaining times, `DELAY` added for each job that is left waiting.

    The first is that of the times on an empty cluster, as predicted; the others shuffle it.

    Args:
        truth, patience, consolidate, slack: as of `Greedy`.
        tries: orders.
        seed: of these.
    """

    def __init__(
        self,
        truth: Truth,
        patience: float = np.inf,
        *,
        consolidate: float = 0.0,
        slack: float = 0.0,
        tries: int = TRIES,
        seed: int = 0,
    ) -> None:
        super().__init__(truth, patience, consolidate=consolidate, slack=slack)
        require_number(tries, "tries", positive=True, whole=True)
        self._tries, self._rng = tries, np.random.default_rng(seed)

    def place(self, env: Environment) -> None:
        """Place every job that fits and is not better off later, in the best order."""
        length = {job: np.log(max(self.least(env, job), 1e-9)) for job in env.waiting if env.fits(job)}
        orders = [tuple(sorted(length, key=length.__getitem__))]
        for _ in range(self._tries - 1 if len(length) > 1 else 0):
            noise = dict(zip(length, SPREAD * self._rng.standard_normal(len(length)), strict=True))
            orders.append(tuple(sorted(length, key=lambda job: length[job] + noise[job])))
        orders = list(dict.fromkeys(orders))
        if len(orders) == 1:
            self.place_in(env, orders[0])
            return
        tried = []
        for order in orders:
            tried.append(env.fork())
            self.place_in(tried[-1], order)
        best = tried[int(np.argmin([self.value(one) for one in tried]))]
        for job in best.running[len(env.running) :]:
            env.place_whole(job, best.rows(job))

    def value(self, env: Environment) -> float:
        """Return the remaining times of all jobs, added up, if those that wait do so for `DELAY`, seconds."""
        wait = DELAY * env.case.interval
        return self.remaining(env) + sum(self.least(env, job) + wait for job in env.waiting)
