"""PAC-ML's published policy: the best score of the distribution's network is the degree, first fit does the rest."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from gangplan.instances.arrays import FloatArray
from gangplan.learned.policy.network import NetworkPolicy, pick
from gangplan.solvers.processes import one_thread

from ..arrivals import DISTRIBUTIONS
from ..jobs import JobType
from ..simulate import Acceptance, RampState
from .network import Policies, batch_of
from .observe import ACTIONS, PublishedObservation, describe, job_rows, op_rows
from .recipe import NAME, PublishedSettings

GRAPHS = 256
"""Op graphs whose vectors are kept."""


class PublishedPolicy(NetworkPolicy):
    """Decides by the network of the case's distribution, of one unknown by that of A; each op graph is read once."""

    recipe, config, make = NAME, PublishedSettings, Policies

    def __init__(self, network: Policies, settings: PublishedSettings, *, distribution: str = "") -> None:
        super().__init__(network, settings)
        self._of, self.distribution = network.of, distribution or next(iter(DISTRIBUTIONS))
        self._vector = lru_cache(GRAPHS)(lambda graph, name: self._of[name].encode(batch_of([graph])))
        self._graph = lru_cache(GRAPHS)(lambda kind: op_rows(kind.graph))
        self._jobs = lru_cache(GRAPHS)(_rows)

    def score(self, observation: PublishedObservation) -> FloatArray:
        """Return a score an action, float64 (ACTIONS,), minus infinity where it is not allowed."""
        with torch.inference_mode(), one_thread():
            vector = self._vector(observation.graph, self.distribution)
            scores = self._of[self.distribution].head(vector, torch.from_numpy(observation.features[None]))[0].numpy()
        return np.where(observation.mask, scores.astype(np.float64), -np.inf)

    def choose(self, observation: PublishedObservation, seed: int | None = None) -> int:
        """Return the action of the best score, or one drawn by that seed from their softmax."""
        return pick(self.score(observation), seed)

    def observe(self, state: RampState) -> PublishedObservation:
        """Return what there is to decide when a job arrives."""
        rows, longest = self._jobs(state.case.types)
        limit, beta, now = (np.array([x]) for x in (state.limit / longest, state.fraction, state.now))
        (row,) = describe(rows[[state.case.model[state.index]]], limit, beta, state.ends[None], now)
        return PublishedObservation(self._graph(state.job), row, row[-ACTIONS:] > 0)

    def decide(self, state: RampState) -> Acceptance | None:
        """Return a degree for the job, or None to reject it."""
        if state.case.distribution:
            self.distribution = state.case.distribution
        action = self.choose(self.observe(state))
        return Acceptance(action - 1) if action else None


def _rows(types: tuple[JobType, ...]) -> tuple[FloatArray, float]:
    """Return what is known of models, and the longest sequential time of them."""
    return job_rows(types), max(x.sequential for x in types)
