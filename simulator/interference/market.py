"""A market of agents: each bids what a job would cost on its racks, an assignment of jobs to agents clears it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from gangplan.instances.arrays import BoolArray, require_number

from .agents import AWARD, BID, JOB, Team
from .case import Case
from .environment import Environment
from .greedy import Greedy, Rows


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
        alive = np.zeros(len(self.servers), dtype=np.bool_)
        alive[self.alive(env)] = True
        jobs = sorted(env.waiting, key=env.profiled.__getitem__)
        told = {job: self._told(job, alive) for job in jobs}
        self.traffic.count(sum(map(len, told.values())) - len(jobs), JOB)
        parts = self.parts(env, {k for asked in told.values() for k in asked})
        bids = {job: {k: self._bid(k, parts[k], job) for k in asked} for job, asked in told.items()}
        while jobs := [job for job in jobs if any(rows for rows, _ in bids[job].values())]:
            first = jobs[: len(parts)]
            awarded = cleared(
                [{k: more for k, (rows, more) in bids[job].items() if rows} for job in first], self._defer
            )
            for at, k in awarded.items():
                job = jobs[at]
                rows = bids.pop(job)[k][0]
                if self.owner[job] != k:
                    self.hand(env, job, k)
                parts[k].waiting = [job]
                parts[k].place_whole(job, rows)
            self.traffic.count(len(awarded), AWARD)
            jobs, busy = [job for job in jobs if job in bids], set(awarded.values())
            for job in jobs:
                for k in busy & bids[job].keys():
                    if bids[job][k][0]:
                        bids[job][k] = self._bid(k, parts[k], job)
        self.start(env, parts)

    def _told(self, job: int, alive: BoolArray) -> list[int]:
        able = self.holds[job] & alive
        if np.count_nonzero(able) <= self._ask + 1:
            return np.flatnonzero(able).tolist()
        own = int(self.owner[job])
        able[own] = False
        return [own, *self._rng.choice(np.flatnonzero(able), self._ask, replace=False).tolist()]

    def _bid(self, k: int, part: Environment, job: int) -> tuple[Rows, float]:
        part.waiting = [job]
        self.traffic.count(1, BID)
        return self._bidders[k].offer(part, job)


def cleared(bids: Sequence[Mapping[int, float]], defer: float) -> dict[int, int]:
    """Return which jobs go to which agents by an assignment of least cost, an agent one job at most.

    Args:
        bids: of each job, what it costs at agents, seconds; one at least.
        defer: seconds over its least bid for which a job stays.
    """
    agents = sorted({k for mine in bids for k in mine})
    column, n = {k: at for at, k in enumerate(agents)}, len(bids)
    row = np.repeat(np.arange(n), [len(mine) for mine in bids])
    at = np.array([column[k] for mine in bids for k in mine], dtype=np.int64)
    cost = np.array([more for mine in bids for more in mine.values()])
    stay = np.minimum.reduceat(cost, np.flatnonzero(np.diff(row, prepend=-1))) + defer + 1e-3
    # all costs are raised alike, for the library takes 0 for no edge
    every = np.concatenate([cost, stay]) - cost.min() + 1.0
    rows, columns = np.concatenate([row, np.arange(n)]), np.concatenate([at, len(agents) + np.arange(n)])
    graph = csr_array((every, (rows, columns)), shape=(n, len(agents) + n))
    chosen = zip(*(x.tolist() for x in min_weight_full_bipartite_matching(graph)), strict=True)
    return {job: agents[k] for job, k in chosen if k < len(agents)}
