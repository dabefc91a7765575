"""What trains the networks: PPO in clusters side by side, one distribution of users after the other."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.learned.training.ppo import Observed, Ppo
from gangplan.learned.training.trainer import Trainer

from ..arrivals import DISTRIBUTIONS, arrivals
from ..learned.recipe import TRAINING, VALIDATION
from ..learned.tables import Clusters
from ..learned.values import Scenario, published
from .network import DegreeCritic, Policies, batch_of
from .observe import ACTIONS, describe, job_rows, op_rows
from .recipe import PublishedSettings

JOBS = 1000
"""Of an episode, as published."""
LANES = 4
"""Episodes that say which network begins."""


class Arriving:
    """Jobs arrive on B clusters side by side: see `gangplan.learned.training.ppo.Episodes`.

    Args:
        first: the seed of the first case.
        count: clusters.
        apart: begin at times apart, so that not all end at once.
    """

    def __init__(self, scenario: Scenario, distribution: str, first: int, count: int, *, apart: bool = False) -> None:
        ((self._types),) = scenario.sets.values()
        self.distribution, self.count, self.rng = distribution, count, np.random.default_rng(first)
        self._times, self._jobs = scenario.times, job_rows(self._types)
        self._sequential = np.asarray(scenario.times.sequential)
        case = arrivals(self._types, distribution, first, n=JOBS)
        self._submit, self._horizon = np.array(case.submit), case.horizon
        self._next = np.array([first])
        self.kind, self.beta = np.zeros((count, JOBS), np.int64), np.zeros((count, JOBS))
        self.at, self.timely = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._clusters = Clusters(scenario.tables, count)
        self.end = np.asarray(self._clusters.ends)
        for lane in range(count):
            self._begin(lane)
        if apart:
            self.at[:] = np.linspace(0, JOBS, count, endpoint=False)

    def _begin(self, lane: int) -> None:
        case = arrivals(self._types, self.distribution, int(self._next[0]), n=JOBS)
        self._next += 1
        self.kind[lane], self.beta[lane] = case.model, case.fraction
        self.at[lane], self.timely[lane], self.end[lane] = 0, 0, -1.0

    def look(self) -> Observed:
        """Return what there is to decide in every episode."""
        over = self.at == JOBS
        for lane in np.flatnonzero(over).tolist():
            self._begin(lane)
        kind, beta, now, limit = self._arriving()
        features = describe(self._jobs[kind], limit / self._sequential.max(), beta, self.end, now)
        rows = np.column_stack([kind, features]).astype(np.float32)
        return Observed(rows, rows[:, -ACTIONS:] > 0, over)

    def take(self, action: NDArray[np.int64]) -> FloatArray:
        """Place the job of each episode by first fit at the degree that its action says, or block it: action 0.

        Returns:
            1 for a job that is accepted, -1 for one blocked, float64 (B,).
        """
        kind, _, now, limit = self._arriving()
        time = np.full(self.count, np.inf)
        for i in np.flatnonzero(action).tolist():
            time[i] = self._clusters.fit(i, now[i], action[i] - 1, self._times, kind[i], limit[i])
        self.at += 1
        self.timely += (time <= limit) & (now + time <= self._horizon)
        return np.where(time <= limit, 1.0, -1.0)

    def _arriving(self) -> tuple[NDArray[np.int64], FloatArray, FloatArray, FloatArray]:
        """Return type, share, arrival and acceptable time of the job of each episode."""
        at = np.arange(self.count), self.at
        return self.kind[at], self.beta[at], self._submit[self.at], self.beta[at] * self._sequential[self.kind[at]]

    def state(self) -> dict[str, FloatArray]:
        """Return all that changes."""
        names = "kind", "beta", "at", "timely", "end"
        return {"next": self._next, **{name: getattr(self, name) for name in names}}

    def load(self, state: dict[str, FloatArray]) -> None:
        """Go back to what `state` returned."""
        self._next[:] = state["next"]
        for name in state.keys() - {"next"}:
            getattr(self, name)[:] = state[name]


class PublishedTraining(Trainer[PublishedSettings]):
    """PPO of each distribution's network."""

    def __init__(self, settings: PublishedSettings, seed: int) -> None:
        super().__init__(settings, seed)
        self.scenario = published(settings.profiles, (settings.units,))
        self._graphs = batch_of([op_rows(x.graph) for x in self.scenario.types])
        self._rate = cache(self._rate_of)

    def network(self) -> Policies:
        """Return the networks of the settings."""
        made = Policies(self.settings)
        for network in made.of.values():
            network.graphs = self._graphs
        return made

    def critic(self) -> DegreeCritic:
        """Return a network for values."""
        made = DegreeCritic(self.settings)
        made.graphs = self._graphs
        return made

    def ppo(self, network: Policies, number: int) -> Ppo:
        """Return what trains the network of a distribution, by its number."""
        network.distribution = list(DISTRIBUTIONS)[number]
        first = TRAINING + 10_000_000 * number
        self._begin(network, first)
        episodes = Arriving(self.scenario, network.distribution, first, self.settings.lanes, apart=True)
        return Ppo(self, network, episodes, pay=self.settings.pay)

    def _begin(self, network: Policies, first: int) -> None:
        """Put the best of some networks that begin apart in the place of the distribution's, by cases of training."""
        own, rng = network.of[network.distribution], np.random.default_rng([self.seed, first])
        drawn = rng.normal(scale=self.settings.spread, size=(self.settings.starts, ACTIONS)).astype(np.float32)
        rates = []
        for bias in drawn:
            own.last.bias.data.copy_(torch.from_numpy(bias))
            rates.append(self._rate_of(network, network.distribution, first, LANES))
        own.last.bias.data.copy_(torch.from_numpy(drawn[int(np.argmin(rates))]))

    def validate(self, network: Policies) -> dict[str, float]:
        """Return published blocking rates: ``score`` by drawn actions, as PPO learns, the others by the best."""
        names, now = list(DISTRIBUTIONS), network.distribution
        before = {x: self._rate(network, x) for x in names[: names.index(now)]}  # those stay as they are
        drawn = self._rate_of(network, now, rng=np.random.default_rng(self.seed))
        return {"score": drawn, **before, now: self._rate_of(network, now)}

    def _rate_of(
        self, network: Policies, distribution: str, first: int = VALIDATION, count: int = 0,
        rng: np.random.Generator | None = None,
    ) -> float:  # fmt: skip
        episodes = Arriving(self.scenario, distribution, first, count or self.settings.validation_seeds)
        with torch.no_grad():
            for _ in range(JOBS):
                seen = episodes.look()
                scores = network.of[distribution](torch.from_numpy(seen.rows)).numpy()
                if rng is not None:
                    scores = scores + rng.gumbel(size=scores.shape)
                episodes.take(np.where(seen.mask, scores, -np.inf).argmax(axis=1))
        return 1 - float(episodes.timely.mean()) / JOBS
