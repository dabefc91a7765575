"""The PAC-ML policy: a degree and a block for every job that arrives on a RAMP cluster, or none."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gangplan.instances import OpGraph
from gangplan.instances.arrays import FloatArray
from gangplan.simulator.ramp import Blocks, Choice, JobType, State

from ..policy import weights
from .graph import encode
from .history import SUMS, remember, turn_of
from .network import Network
from .rows import Desk, desk, write_rows
from .tables import Menus, Tables, menus, tables


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One decision.

    Attributes:
        rows: features of the candidates, the first of which rejects the job, float32 (A, WIDTH).
        graph: of the job, unsplit.
        block: of each candidate, int64 (A,), -1 for none.
    """

    rows: NDArray[np.float32]
    graph: OpGraph
    block: NDArray[np.int64]


class RampPolicy:
    """Decides by the best score of a network.

    Args:
        network: scores.
        settings: what it was trained with.
        device: where the network runs.
    """

    def __init__(self, network: Network, settings: Mapping[str, Any] | None = None, *, device: str = "cpu") -> None:
        self.network, self.settings, self.device = network.to(device).eval(), dict(settings or {}), device
        self._choose = bool(self.settings.get("blocks", True))
        self._offset: weakref.WeakKeyDictionary[OpGraph, torch.Tensor] = weakref.WeakKeyDictionary()
        self._on: weakref.WeakKeyDictionary[Blocks, tuple[Tables, Desk]] = weakref.WeakKeyDictionary()
        self._menu: weakref.WeakKeyDictionary[JobType, Menus] = weakref.WeakKeyDictionary()
        self._past = _Past()

    def score(self, observation: Observation) -> FloatArray:
        """Return a score a candidate, float64 (A,): more is better."""
        with torch.inference_mode():
            rows = torch.from_numpy(observation.rows).to(self.device)
            return np.asarray(self.network(rows, self._offsets(observation.graph)).cpu().numpy(), dtype=np.float64)

    def choose(self, observation: Observation, seed: int | None = None) -> int:
        """Return the place of the best candidate, or of one drawn by that seed from the softmax of the scores."""
        scores = self.score(observation)
        if seed is None:
            return int(np.argmax(scores))
        return int(np.argmax(scores + np.random.default_rng(seed).gumbel(size=len(scores))))

    def observe(self, state: State) -> Observation:
        """Return what there is to decide when a job arrives."""
        place = self._on.get(state.blocks)
        if place is None:
            made = tables(state.blocks)
            place = self._on[state.blocks] = made, desk(made, choose=self._choose)
        menu = self._menu.get(state.job)
        if menu is None:
            menu = self._menu[state.job] = menus([state.job])
        sums = self._past.up_to(state)
        turn = turn_of(sums, place[0].n)
        k = write_rows(
            state.ends, state.now, turn, place[0], menu.jct[0], state.job.sequential, state.fraction, sums, place[1]
        )
        return Observation(place[1].row[:k].copy(), state.job.graph, place[1].block[:k].copy())

    def decide(self, state: State) -> Choice | None:
        """Return degree and block for the job, or None to reject it."""
        seen = self.observe(state)
        block = int(seen.block[self.choose(seen)])
        return None if block < 0 else Choice(int(state.blocks.degree[block]), block)

    def save(self, path: str | Path, card: weights.Card | None = None) -> None:
        """Write weights and a model card."""
        card = card or weights.Card("pacml", "pacml", settings=self.settings)
        weights.save(path, self.network.state_dict(), card)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "cpu") -> RampPolicy:
        """Read what `save` wrote.

        Raises:
            InstanceError: if it is missing, broken or of another policy.
        """
        tensors, card = weights.load(path)
        network = Network(int(card.settings.get("width", 96)), card.settings.get("variant", "gnn"))
        weights.match(tensors, {name: tuple(x.shape) for name, x in network.state_dict().items()}, path)
        network.load_state_dict(tensors)
        return cls(network, card.settings, device=device)

    def _offsets(self, graph: OpGraph) -> torch.Tensor:
        found = self._offset.get(graph)
        if found is None:
            graphs = encode([graph])
            there = graphs._replace(x=graphs.x.to(self.device), edges=graphs.edges.to(self.device))
            found = self._offset[graph] = self.network.offsets(there._replace(job=graphs.job.to(self.device)))
        return found


class _Past:
    """The sums over the jobs of a case so far, gone on with as they arrive."""

    def __init__(self) -> None:
        self._case: Any = None
        self._index = -1
        self._sums = np.zeros(SUMS)

    def up_to(self, state: State) -> FloatArray:
        case = state.case
        if self._case is not case or state.index < self._index:
            self._case, self._index = case, -1
            self._sums[:] = 0.0
        for i in range(self._index + 1, state.index + 1):
            kind = case.types[case.model[i]]
            gap = case.submit[i] - case.submit[i - 1] if i else 0.0
            remember(self._sums, case.fraction[i], kind.sequential, _efficiency(kind), gap)
        self._index = state.index
        return self._sums


_EFFICIENCY: weakref.WeakKeyDictionary[JobType, FloatArray] = weakref.WeakKeyDictionary()


def _efficiency(kind: JobType) -> FloatArray:
    found = _EFFICIENCY.get(kind)
    if found is None:
        found = _EFFICIENCY[kind] = menus([kind]).efficiency[0]
    return found
