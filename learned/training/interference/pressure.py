"""Our model: jobs exert pressures on the places where they are, and suffer from those that others exert there.

At each place a job takes (1 + k s P)^(1 / k) times as long as by itself, with P the pressures of the others there, a
sum over jobs, s how much its type suffers from each, and k the same for all: with 1 what others add is summed up, the
smaller it is, the more it multiplies. Each further worker of its own on a server, with which it may share a GPU, adds
to s P what its type says. The slowest of its servers, and the busiest link that it crosses, count:

    1 / speed = compute + synchronisation,
    compute = c max over servers with workers of (...),
    synchronisation = max over links of (bytes passed, by type) (...) times the max over those with PS of (...)

All that types do and suffer comes from their features and a share of their own, drawn to 0; servers and links have a
factor each. Source: the form of the cost model (docs/placement.md) and of ESP (Mishra et al., HPDC 2017).
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from .networks import RowBatch, train
from .samples import AMOUNTS, KnownSetting, Samples
from .simple import Point

_WORKERS, _SERVERS = (AMOUNTS.index(x) for x in ("workers", "servers"))
STEPS = 300
_FELLOW = -4.0
"""What another worker of the same job adds at first, of which softplus is taken: next to nothing."""
RATE = 0.06


class Pressure(nn.Module):
    """Logarithms of speeds, by so many kinds of pressure of each place."""

    def __init__(self, setting: KnownSetting, kinds: int = 16) -> None:
        super().__init__()
        types, features = setting.features.shape
        self.kinds, self.width = kinds, 8 * kinds + 3
        self.register_buffer("features", torch.as_tensor(setting.features, dtype=torch.float32))
        self.own = nn.Parameter(0.3 * torch.randn(types, self.width))
        self.shared = nn.Parameter(torch.zeros(features, self.width))
        self.common = nn.Parameter(0.5 * torch.randn(self.width) - 1.5)
        self.common.data[-1] = _FELLOW
        self.compute = nn.Parameter(torch.zeros(types))
        self.site = nn.Parameter(torch.zeros(setting.sites))
        self.curve = nn.Parameter(torch.zeros(3))

    def forward(self, x: RowBatch) -> Tensor:
        """Return the logarithm of the speed of each job, (n,)."""
        r, n = self.kinds, len(x.kind)
        table = softplus(self.own + self.features @ self.shared + self.common)
        bytes_, suffers, exerts, crosses, fellow = table.split([2, 3 * r, 2 * r, 3 * r, 1], dim=1)
        kind, a = x.kind[x.job], x.amount
        on_link = torch.cat([torch.ones_like(a[:, :1]), a[:, 2:]], dim=1)
        pressure = torch.where(
            x.link[:, None],
            (crosses[kind].view(-1, 3, r) * on_link[:, :, None]).sum(1),
            (exerts[kind].view(-1, 2, r) * a[:, :2, None]).sum(1),
        )
        total = pressure.new_zeros(int(x.place.max()) + 1, r).index_add(0, x.place, pressure)
        beside = total[x.place] - pressure
        factor, curve = self.site.exp()[x.site], self.curve.exp()
        suffers = suffers.view(-1, 3, r)

        def slower(part: int, chosen: Tensor, by: Tensor, own: Tensor | float = 0.0) -> Tensor:
            felt = (suffers[kind[chosen], part] * beside[chosen]).sum(1) * by + own
            return (1 + curve[part] * felt) ** (1 / curve[part])

        workers, servers = (~x.link & (a[:, i] > 0) for i in (_WORKERS, _SERVERS))
        one = torch.ones(n)
        own = fellow[kind[workers], 0] * (a[workers, _WORKERS] - 1)
        compute = _largest(one, x.job[workers], slower(0, workers, factor[workers], own))
        waits = _largest(one, x.job[servers], slower(1, servers, factor[servers]))
        seconds = (bytes_[kind[x.link]] * a[x.link, 2:]).sum(1) * factor[x.link]
        crossing = _largest(0 * one, x.job[x.link], seconds * slower(2, x.link, torch.ones(())))
        return -torch.log(self.compute.exp()[x.kind] * compute + crossing * waits)

    def penalty(self) -> Tensor:
        """Return how far types, servers and links are from their common values."""
        return (
            0.3 * self.own.square().sum() + 0.03 * self.shared.square().sum() + self.site.square().sum()
            + 0.1 * self.compute.square().sum() + self.curve.square().sum()
        )  # fmt: skip


def _largest(start: Tensor, job: Tensor, values: Tensor) -> Tensor:
    """Return the largest of the values of each job and its start, (n,)."""
    return start.scatter_reduce(0, job, values, "amax")


def pressure(samples: Samples, seed: int, *, kinds: int = 8, steps: int = STEPS) -> Point:
    """Fit the model by gradients, see `gangplan.learned.training.interference.networks.train`."""
    made = partial(Pressure, samples.setting, kinds)
    return train(made, samples, seed, steps=steps, rate=RATE, penalty=Pressure.penalty, minibatch=1000)
