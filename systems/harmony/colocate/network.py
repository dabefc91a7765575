"""The ensemble of `pressure` models that the policy is: its parameters, and these as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from gangplan.learned.interference.networks import Batch
from gangplan.learned.interference.pressure import Pressure
from gangplan.learned.interference.samples import Setting

from .kernel import Fitted
from .recipe import Settings


class Ensemble(nn.Module):
    """Members that have each not seen some combinations of types, and what they are used for.

    Args:
        setting: types, servers and links.
        settings: how many members, of how many kinds of pressure.
    """

    def __init__(self, setting: Setting, settings: Settings) -> None:
        super().__init__()
        self.members = nn.ModuleList(Pressure(setting, settings.kinds) for _ in range(settings.members))
        self.register_buffer("link", torch.from_numpy(setting.link))
        self.register_buffer("unit", torch.from_numpy(np.log(setting.unit)))
        self.register_buffer("way", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Batch) -> Tensor:
        """Return the logarithm of the relative speed of each job by each member, (E, n)."""
        return torch.stack([member(x) for member in self.members])


def arrays(ensemble: Ensemble, members: Sequence[int] | None = None) -> Fitted:
    """Return an ensemble, or some of its members, as the kernel takes it."""
    parts: list[tuple[Tensor, ...]] = []
    with torch.no_grad():
        for x in ensemble.members if members is None else [ensemble.members[i] for i in members]:
            r = x.kinds
            table = softplus(x.own + x.features @ x.shared + x.common).split([2, 3 * r, 2 * r, 3 * r, 1], dim=1)
            parts.append((*table, x.compute.exp(), x.site.exp(), x.curve.exp()))
    stacked = (np.ascontiguousarray(torch.stack(x).double().numpy()) for x in zip(*parts, strict=True))
    return Fitted(ensemble.link.numpy().astype(np.int64), ensemble.unit.double().numpy()[None].copy(), *stacked)
