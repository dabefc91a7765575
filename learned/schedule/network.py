"""The network: messages between jobs make a vector of each job and option; candidates are rated with these added."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from ..encode.encoding import Encoding
from ..gnn import Batch, GraphNetwork, Schema, collate
from .features import FEATURES
from .play import BIAS, Net

BASE = FEATURES.index("base")
HIDDEN = 32


class Network(nn.Module):
    """Rates candidates; a new one rates all of them 0, so that the base's choice stands.

    Args:
        schema: of the graphs, see `gangplan.learned.schedule.graph`.
        width, rounds: of the messages; with no rounds a job knows itself only.
    """

    def __init__(self, schema: Schema, width: int = 32, rounds: int = 2) -> None:
        super().__init__()
        self.body = GraphNetwork(schema, width, rounds)
        self.by_job = nn.Linear(width, HIDDEN)
        self.by_option = nn.Linear(width, HIDDEN, bias=False)
        self.first = nn.Linear(len(FEATURES), HIDDEN, bias=False)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.last = nn.Linear(HIDDEN, 1, bias=False)
        nn.init.zeros_(self.last.weight)

    def offsets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return what each job (n, h) and each option (o, h) adds to the first layer."""
        hidden = self.body(batch)
        return self.by_job(hidden["jobs"]), self.by_option(hidden["options"])

    def forward(self, batch: Batch, x: Tensor, job: Tensor, option: Tensor) -> Tensor:
        """Return a score a candidate, the base's advantage included, (a,).

        Args:
            batch: the graphs.
            x: features of the candidates, (a, f).
            job, option: of each, into the batch; an option of -1 is leaving the job out.
        """
        by_job, by_option = self.offsets(batch)
        runs = (option >= 0)[:, None]
        start = self.first(x) + by_job[job] + torch.where(runs, by_option[option.clamp(min=0)], 0.0)
        found: Tensor = self.last(torch.relu(self.second(torch.relu(start))))[:, 0]
        return found + BIAS * x[:, BASE]


def compiled(network: Network, graphs: Sequence[Encoding]) -> list[Net]:
    """Return the network as arrays for each of some graphs, their vectors worked in."""
    with torch.inference_mode():
        batch = collate(graphs)
        by_job, by_option = (x.cpu().numpy() for x in network.offsets(batch))
        shared = (_array(network.second.weight.T), _array(network.second.bias), _array(network.last.weight[0]))
        first = _array(network.first.weight.T)
    jobs, options = batch.first["jobs"].tolist(), batch.first["options"].tolist()
    return [
        Net(first, by_job[a:b], by_option[c:d], *shared)
        for (a, b), (c, d) in zip(pairwise(jobs), pairwise(options), strict=True)
    ]


def _array(x: Tensor) -> np.ndarray:
    return np.ascontiguousarray(x.detach().cpu().numpy(), dtype=np.float32)
