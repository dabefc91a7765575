"""The network: messages between jobs, nodes, kinds of GPUs and racks say what a batch is like; a head scores places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.placement import PlacementProblem

from ..gnn import Batch, GraphNetwork, Schema, collate, mlp, schema_of
from ..gnn.network import squeezed
from .encoded import encode
from .features import AT, NAMES

SEEN = 12
"""Numbers that a head sees of the job, and as many of the nodes of a place."""
_STEEP = 12.0
"""By how much the score falls with the cost of a mean job, before anything is learned."""


@dataclass(frozen=True, slots=True)
class Example:
    """A decision, and what its places are worth.

    Attributes:
        encoding: of its batch, by index into those given beside it.
        job: whose turn it is.
        x: figures of the places, float64 (C, F).
        place, node: pairs of a place and one of its nodes, (P,) each.
        regret: what taking each costs in the end, as a share of the mean weight of a job, float64 (C,).
    """

    encoding: int
    job: int
    x: FloatArray
    place: IntArray
    node: IntArray
    regret: FloatArray


class Network(nn.Module):
    """Scores the places of decisions.

    A score is what the place costs at once, less is more, and a correction by the head, none at first: an untrained
    network is the greedy heuristic that takes the place of the least cost.

    Args:
        width: of the vectors of messages.
        rounds: of messages.
        flat: leave out the racks: jobs, nodes and kinds of GPUs only.
    """

    def __init__(self, width: int = 32, rounds: int = 2, flat: bool = False) -> None:
        super().__init__()
        self.flat = flat
        self.graph = GraphNetwork(schema(flat), width, rounds)
        self.job, self.node = nn.Linear(width, SEEN), nn.Linear(width, SEEN)
        self.head = mlp([len(NAMES) + 2 * SEEN, 64, 32, 1])
        self.turn = nn.Linear(width, 1)
        self.steep = nn.Parameter(torch.tensor(_STEEP).log())
        for layer in (self.head[-1], self.turn):
            assert isinstance(layer, nn.Linear)
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def context(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return what the head sees of each job and of each node, and the turn of each job: the largest goes first."""
        found = self.graph(batch)
        return self.job(found["jobs"]), self.node(found["nodes"]), self.turn(found["jobs"])[:, 0]

    def forward(self, batch: Batch, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """Return the scores of all places of some decisions, and the decision of each, (A,) both.

        Args:
            batch: the encodings; an example names its own by index.
            examples: the decisions.
        """
        jobs, nodes, _ = self.context(batch)
        x = torch.from_numpy(np.concatenate([e.x for e in examples])).float()
        sizes = [len(e.x) for e in examples]
        of = torch.from_numpy(np.repeat(np.arange(len(examples)), sizes))
        job = torch.tensor([int(batch.first["jobs"][e.encoding]) + e.job for e in examples])[of]
        start = np.cumsum([0, *sizes[:-1]])
        place = torch.from_numpy(np.concatenate([e.place + s for e, s in zip(examples, start, strict=True)])).long()
        first = batch.first["nodes"].tolist()
        node = torch.from_numpy(np.concatenate([e.node + first[e.encoding] for e in examples])).long()
        count = torch.zeros(len(x)).index_add(0, place, torch.ones(len(place)))
        pooled = torch.zeros(len(x), SEEN).index_add(0, place, nodes[node]) / count.clamp(min=1)[:, None]
        return self.scored(x, jobs[job], pooled), of

    def scored(self, x: Tensor, job: Tensor, pooled: Tensor) -> Tensor:
        """Return the scores of places, (A,), from their figures and what is seen of their jobs and nodes."""
        more: Tensor = self.head(torch.cat([squeezed(x), job, pooled], dim=1))[:, 0]
        return more - self.steep.exp() * x[:, AT["dearer"]]


@lru_cache(maxsize=2)
def schema(flat: bool = False) -> Schema:
    """Return the schema of the encodings."""
    from gangplan.instances.generators.gangs import gangs

    return schema_of(encode(gangs(jobs=2, racks=1, nodes=2, gpus=2), flat))


def one(problem: PlacementProblem, flat: bool) -> Batch:
    """Return the graph of one batch."""
    return collate([encode(problem, flat)])
