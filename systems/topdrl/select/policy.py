"""The policy: a network scores the candidates, and the best one is done; a guard watches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.learned.policy.network import NetworkPolicy, pick
from gangplan.learned.training.checkpoint import Tensors
from gangplan.simulator.gangs.arrays import Cluster, Jobs, State

from .candidates import scratch_of
from .episodes import RULES, guarded, observe, play
from .features import WIDTH
from .recipe import NAME, SelectSettings

if TYPE_CHECKING:
    from gangplan.learned.training.perceptron import Perceptron


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One decision.

    Attributes:
        rows: features of the candidates, float32 (A, WIDTH).
        place: in the queue of the job that each starts, -1 to wait, int64 (A,).
        take: GPUs of each node that it gets, int64 (A, m).
    """

    rows: NDArray[np.float32]
    place: NDArray[np.int64]
    take: NDArray[np.int64]


class SelectPolicy(NetworkPolicy):
    """A policy for `gangplan.systems.topdrl.simulate`.

    Args:
        guarded: whether it is held against plain rules, see `gangplan.systems.topdrl.select.episodes`.
    """

    recipe, config = NAME, SelectSettings
    network: Perceptron

    def __init__(self, network: Perceptron, settings: SelectSettings | None = None, *, guarded: bool = True) -> None:
        super().__init__(network, replace(settings or SelectSettings(), width=network.width))
        self.guarded = guarded

    @classmethod
    def build(cls, settings: SelectSettings, tensors: Tensors) -> Perceptron:
        """Return the network of the settings."""
        from gangplan.learned.training.perceptron import Perceptron

        return Perceptron(WIDTH, settings.width)

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""

        s, net = scratch_of(cluster, WIDTH), self.network.compiled()
        if self.guarded:
            guarded(jobs, cluster, state, s, net)
        else:
            play(jobs, cluster, state, s, net, RULES[0], True, len(jobs.submit) + 1)

    def observe(self, jobs: Jobs, cluster: Cluster, state: State) -> Observation | None:
        """Return what there is to decide, None if no waiting job fits."""

        s = scratch_of(cluster, WIDTH)
        k = observe(jobs, cluster, state, s)
        return Observation(s.row[:k], s.place[:k], s.take[:k]) if k else None

    def score(self, observation: Observation) -> FloatArray:
        """Return what the network says of each candidate, float64 (A,)."""
        return np.asarray(self.scores(observation.rows), dtype=np.float64)

    def choose(self, observation: Observation, seed: int | None = None) -> int:
        """Return the place of the candidate the network likes best, or of one drawn from the softmax of the scores."""
        return pick(self.score(observation), seed)
