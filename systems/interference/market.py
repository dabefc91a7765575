"""A market of agents: each bids what a job would cost on its racks, an assignment of jobs to agents clears it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from time import perf_counter
from typing import Any

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.errors import InstanceError

from .agents import AWARD, BID, JOB, Team
from .baselines import ScoreRule
from .bidders import Bidders, Bids, Here, Local, Message, sound
from .case import InterferenceCase
from .environment import Environment
from .greedy import Rows

_LOG = logging.getLogger(__name__)


class Market(Team):
    """Agents bid by how much the remaining times on their racks add up to more with a job; jobs go where that is least.

    Bids are cleared in rounds: in each the jobs of the least bids, as many as agents, go to one agent each by an
    assignment of least cost in which a job may also stay for the next round, at its least bid. Then agents with an
    award bid again. What nobody bids for waits. An agent that does not answer in time is passed over; a job that was
    awarded to it goes on waiting. Bids that make no sense are ignored, and logged; who wins with a place that does not
    hold the job is asked no more.

    Args:
        local: makes the bidder of an agent from the case of its racks.
        ask: agents that are told of a job at an interval besides its own, drawn anew; all of them by default.
        bidders: how agents are reached: `Here`, `Processes` or `Actors`.
        words: others of `Team`.

    Attributes:
        bidders: made of that.
    """

    def __init__(
        self,
        case: InterferenceCase,
        local: Local,
        *,
        ask: int | None = None,
        bidders: Callable[[Sequence[InterferenceCase], Local], Bidders] = Here,
        **words: Any,
    ) -> None:
        super().__init__(case, lambda part: ScoreRule("first"), **words)
        self.bidders = bidders(self.cases, local)
        self._ask = len(self.servers) if ask is None else ask

    def place(self, env: Environment) -> None:
        """Clear the market of all that waits."""
        for k in sorted(k for k in self.bidders.lost if env.now < self._fails.get(k, np.inf)):
            self._fails[k] = env.now
            _LOG.warning("agent %d: is no more; the jobs that wait for it are others' now", k)
        alive = np.zeros(len(self.servers), dtype=np.bool_)
        alive[self.alive(env)] = True
        jobs, asked = sorted(env.waiting, key=env.profiled.__getitem__), dict[int, list[int]]()
        for job in jobs:
            told = self._told(job, alive)
            self.traffic.count(len(told) - (int(self.owner[job]) in told), JOB)
            for k in told:
                asked.setdefault(k, []).append(job)
        self.bidders.begin(self.parts(env, asked))
        bids: dict[int, Bids] = {job: {} for job in jobs}
        self._hear({k: Message(mine) for k, mine in asked.items()}, bids)
        placed: list[tuple[int, int, Rows]] = []
        while jobs := [job for job in jobs if bids.get(job)]:
            jobs.sort(key=lambda job: min(more for _, more in bids[job].values()))
            costs = [{k: more for k, (_, more) in bids[job].items()} for job in jobs[: len(self.servers)]]
            offers = {k: (jobs[at], bids[jobs[at]].pop(k)[0]) for at, k in cleared(costs).items()}
            self.traffic.count(len(offers), AWARD)
            awarded = {job for job, _ in offers.values()}
            again = {k: [job for job in jobs if k in bids[job] and job not in awarded] for k in offers}
            answered = self._hear({k: Message(again[k], offer) for k, offer in offers.items()}, bids)
            for k, (job, rows) in offers.items():
                if k in answered:
                    placed.append((k, job, rows))
                    del bids[job]
                else:  # who has just won another job has not bid for this one since
                    bids[job] = {x: found for x, found in bids[job].items() if x not in offers}
        for k, job, rows in sorted(placed, key=itemgetter(0)):
            if tuple(map(sum, zip(*rows.values(), strict=True))) == env.left(job):
                with suppress(InstanceError):
                    env.place_whole(job, {self.servers[k].start + s: row for s, row in rows.items()})
            if np.isinf(env.start[job]):
                env.take_back()
                if env.now < self._fails.get(k, np.inf):
                    self._fails[k] = env.now
                    _LOG.warning("agent %d: offered job %d a place that does not hold it, and is asked no more", k, job)
            elif self.owner[job] != k:
                self.hand(env, job, k)

    def _hear(self, asks: Mapping[int, Message], bids: Mapping[int, Bids]) -> list[int]:
        """Put bids in the place of older ones; return who answered."""
        begin = perf_counter()
        found = self.bidders.ask(asks)
        self.traffic.rounds += 1
        self.traffic.seconds += perf_counter() - begin
        self.traffic.wire = self.bidders.wire
        for k, ask in asks.items():
            self.traffic.count(len(ask.jobs), BID)
            for job in ask.jobs:
                bids[job].pop(k, None)
            heard = sound(found.get(k, {}), ask.jobs, self.cases[k].fleet.n_nodes)
            if len(heard) < len(found.get(k, ())):
                _LOG.warning("agent %d: %d bids make no sense and are ignored", k, len(found[k]) - len(heard))
            for job, offer in heard.items():
                bids[job][k] = offer
        return list(found)

    def _told(self, job: int, alive: BoolArray) -> list[int]:
        able = self.holds[job] & alive
        if np.count_nonzero(able) <= self._ask + 1:
            return np.flatnonzero(able).tolist()
        own = int(self.owner[job])
        first, able[own] = [own] if able[own] else [], False
        return [*first, *self._rng.choice(np.flatnonzero(able), self._ask, replace=False).tolist()]


def cleared(bids: Sequence[Mapping[int, float]]) -> dict[int, int]:
    """Return which jobs go to which agents by an assignment of least cost, an agent one job at most.

    Args:
        bids: of each job, what it costs at agents, seconds; one at least.
    """
    agents = sorted({k for mine in bids for k in mine})
    column, n = {k: at for at, k in enumerate(agents)}, len(bids)
    cost = np.full((n, len(agents) + n), np.inf)
    for i, mine in enumerate(bids):
        cost[i, [column[k] for k in mine]] = list(mine.values())
        cost[i, len(agents) + i] = min(mine.values()) + 1e-3  # it stays for the next round
    return {job: agents[k] for job, k in enumerate(assigned(cost)) if k < len(agents)}


def assigned(cost: FloatArray) -> list[int]:
    """Return the column of each row by an assignment of least cost, by shortest augmenting paths (Jonker, Volgenant).

    Args:
        cost: infinite where a row may not have a column, float64 (n, m); some assignment is finite.
    """
    n, m = cost.shape
    row_of, price, paid = np.full(m, -1), np.zeros(m), np.zeros(n)
    for start in range(n):
        near, before, done = np.full(m, np.inf), np.full(m, -1), np.zeros(m, dtype=bool)
        row, at, length = start, -1, 0.0
        while row >= 0:
            far = length + cost[row] - paid[row] - price
            closer = ~done & (far < near)
            near[closer], before[closer] = far[closer], at
            at = int(np.argmin(np.where(done, np.inf, near)))
            length, done[at], row = float(near[at]), True, int(row_of[at])
        paid[start] += length
        inner = done & (row_of >= 0)
        paid[row_of[inner]] += length - near[inner]
        price[done] -= length - near[done]
        while at >= 0:
            row_of[at], at = (row_of[before[at]] if before[at] >= 0 else start), int(before[at])
    return [int(x) for x in np.argsort(np.where(row_of < 0, n, row_of), kind="stable")[:n]]
