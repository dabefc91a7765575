"""A graph network of jobs and the places that they share: messages from jobs to servers and links, and back."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINEConv

from .networks import RowBatch, train
from .samples import AMOUNTS, KnownSetting, Samples
from .simple import Point


class JobsAndPlaces(nn.Module):
    """Logarithms of speeds by rounds of messages on a bipartite graph (GINE, Hu et al., ICLR 2020).

    Places sum up what their jobs say; a job takes the most of what its places say, for the slowest counts. Vectors of
    jobs and places are of `width`; messages go there and back in each round.
    """

    def __init__(self, setting: KnownSetting, width: int = 48, rounds: int = 2) -> None:
        super().__init__()
        self.register_buffer("features", torch.as_tensor(setting.features, dtype=torch.float32))
        types, features = setting.features.shape
        self.kind, self.about = nn.Embedding(types, width), nn.Linear(features, width)
        self.site, self.level = nn.Embedding(setting.sites, width), nn.Embedding(2, width)
        there, back = ([self._round(width, aggr) for _ in range(rounds)] for aggr in ("sum", "max"))
        self.there, self.back = nn.ModuleList(there), nn.ModuleList(back)
        self.out = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    @staticmethod
    def _round(width: int, aggr: str) -> GINEConv:
        inner = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        return GINEConv(inner, edge_dim=2 * len(AMOUNTS), aggr=aggr)

    def forward(self, x: RowBatch) -> Tensor:
        """Return the logarithm of the speed of each job, (n,)."""
        jobs = self.kind(x.kind) + self.about(self.features)[x.kind]
        count = int(x.place.max()) + 1
        site = x.site.new_zeros(count).scatter(0, x.place, x.site)
        level = x.site.new_zeros(count).scatter(0, x.place, x.link.long())
        places = self.site(site) + self.level(level)
        edge = torch.cat([x.amount, (x.amount > 0).float()], dim=1)
        there, back = torch.stack([x.job, x.place]), torch.stack([x.place, x.job])
        for first, second in zip(self.there, self.back, strict=True):
            places = places + first((jobs, places), there, edge)
            jobs = jobs + second((places, jobs), back, edge)
        return self.out(jobs)[:, 0]


def graph(samples: Samples, seed: int, *, steps: int = 500) -> Point:
    """Fit the network, see `gangplan.learned.training.interference.networks.train`."""
    made = partial(JobsAndPlaces, samples.setting)
    return train(made, samples, seed, steps=steps, rate=3e-3, penalty=lambda x: x.site.weight.square().sum() * 0.1)
