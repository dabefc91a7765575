"""The policy: a network scores the candidates, and the best one is done; a guard watches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.learned.policy import weights
from gangplan.solvers.processes import one_thread

from ..arrays import Cluster, Jobs, State
from .settings import NAME, Settings

if TYPE_CHECKING:
    from .network import Network


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


class SelectPolicy:
    """A policy for `gangplan.systems.topdrl.simulate`.

    Args:
        network: scores candidates.
        settings: what it was trained with.
        guarded: whether it is held against plain rules, see `gangplan.systems.topdrl.select.guard`.
    """

    def __init__(self, network: Network, settings: Mapping[str, Any] | None = None, *, guarded: bool = True) -> None:
        self.network = network.cpu().eval()
        self.settings = {**(settings or {}), "width": network.width}
        self.guarded = guarded

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        from .candidates import scratch_of
        from .episodes import play
        from .features import WIDTH
        from .guard import RULES, guarded
        from .network import compiled

        s, net = scratch_of(cluster, WIDTH), compiled(self.network)
        if self.guarded:
            guarded(jobs, cluster, state, s, net)
        else:
            play(jobs, cluster, state, s, net, RULES[0], True, len(jobs.submit) + 1)

    def observe(self, jobs: Jobs, cluster: Cluster, state: State) -> Observation | None:
        """Return what there is to decide, None if no waiting job fits."""
        from .candidates import scratch_of
        from .episodes import observe
        from .features import WIDTH

        s = scratch_of(cluster, WIDTH)
        k = observe(jobs, cluster, state, s)
        return Observation(s.row[:k], s.place[:k], s.take[:k]) if k else None

    def score(self, observation: Observation) -> FloatArray:
        """Return what the network says of each candidate, float64 (A,)."""
        import torch

        with torch.inference_mode(), one_thread():
            found = self.network(torch.from_numpy(observation.rows))
        return np.asarray(found.numpy(), dtype=np.float64)

    def choose(self, observation: Observation, seed: int | None = None) -> int:
        """Return the place of the candidate the network likes best, or of one drawn from the softmax of the scores."""
        scores = self.score(observation)
        if seed is not None:
            scores = scores + np.random.default_rng(seed).gumbel(size=len(scores))
        return int(np.argmax(scores))

    def save(self, path: str | Path, card: weights.Card | None = None) -> None:
        """Write weights and a model card."""
        weights.save(path, self.network.state_dict(), card or weights.Card(NAME, NAME, settings=self.settings))

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> SelectPolicy:
        """Read what `save` wrote.

        Raises:
            InstanceError: if it is missing, broken or of another policy.
        """
        from .network import Network

        network, _, card = weights.restore(path, NAME, Settings, lambda made: Network(made.width))
        return cls(network, card.settings, **options)
