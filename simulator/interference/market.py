"""A market of agents: each bids what a job would cost on its racks, an assignment of jobs to agents clears it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment

from gangplan.instances.arrays import require_number

from .agents import AWARD, BID, JOB, Team
from .case import Case
from .environment import Environment
from .greedy import Greedy, Rows

FAR = 1e15
"""Seconds that stand for a bid that is not there."""


class Market(Team):
    """Agents bid by how much the remaining times on their racks add up to more with a job; jobs go where that is least.

    Bids are cleared in rounds: in each an agent is awarded one job at most, by an assignment of least cost in which a
    job may also stay for the next round, at the price of its least bid and `defer` seconds. Then agents with an award
    bid again. What nobody bids for waits.

    Args:
        case: what is simulated.
        local: makes the bidder of an agent from the case of its racks.
        racks, seed, fails: as of `Team`.
        ask: agents that are told of a job at an interval besides its own, drawn anew; all of them by default.
        defer: seconds, see above.
    """

    def __init__(
        self,
        case: Case,
        local: Callable[[Case], Greedy],
        *,
        racks: int = 1,
        seed: int = 0,
        fails: Mapping[int, float] | None = None,
        ask: int | None = None,
        defer: float = 0.0,
    ) -> None:
        super().__init__(case, local, racks=racks, seed=seed, fails=fails)
        require_number(defer, "defer")
        self._bidders = [local(part) for part in self.cases]
        self._ask, self._defer = len(self.servers) if ask is None else ask, defer

    def place(self, env: Environment) -> None:
        """Clear the market of all that waits."""
        agents = self.alive(env)
        parts = self.parts(env, agents)
        jobs = sorted(env.waiting, key=env.profiled.__getitem__)
        bids: dict[int, dict[int, tuple[Rows, float]]] = {}
        for job in jobs:
            told = self._told(job, agents)
            self.traffic.count(len(told) - 1, JOB)
            bids[job] = {k: self._bid(k, parts[k], job) for k in told}
        while jobs := [job for job in jobs if any(rows for rows, _ in bids[job].values())]:
            awarded = self._clear(jobs[: len(agents)], bids, agents)
            for job, k in awarded.items():
                rows = bids.pop(job)[k][0]
                if self.owner[job] != k:
                    self.hand(env, job, k)
                parts[k].waiting = [job]
                parts[k].place_whole(job, rows)
            self.traffic.count(len(awarded), AWARD)
            jobs = [job for job in jobs if job in bids]
            for job in jobs:
                for k in set(awarded.values()) & bids[job].keys():
                    if bids[job][k][0]:
                        bids[job][k] = self._bid(k, parts[k], job)
        self.start(env, parts)

    def _told(self, job: int, agents: list[int]) -> list[int]:
        able = [k for k in agents if self.holds[job, k]]
        if len(able) <= self._ask + 1:
            return able
        own = int(self.owner[job])
        others = [k for k in able if k != own]
        return [own, *self._rng.choice(others, self._ask, replace=False).tolist()]

    def _bid(self, k: int, part: Environment, job: int) -> tuple[Rows, float]:
        part.waiting = [job]
        self.traffic.count(1, BID)
        return self._bidders[k].offer(part, job)

    def _clear(
        self, jobs: list[int], bids: dict[int, dict[int, tuple[Rows, float]]], agents: list[int]
    ) -> dict[int, int]:
        """Return job -> agent of an assignment of least cost."""
        column = {k: at for at, k in enumerate(agents)}
        cost = np.full((len(jobs), len(agents)), FAR)
        for row, job in enumerate(jobs):
            for k, (rows, more) in bids[job].items():
                if rows:
                    cost[row, column[k]] = more
        stay = np.full((len(jobs), len(jobs)), FAR)
        np.fill_diagonal(stay, cost.min(axis=1) + self._defer + 1e-3)
        chosen = linear_sum_assignment(np.hstack([cost, stay]))
        return {
            jobs[row]: agents[at] for row, at in zip(*(x.tolist() for x in chosen), strict=True) if at < len(agents)
        }
