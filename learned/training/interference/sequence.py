"""The published reward model: a sequence-to-sequence network from what is on the servers to the speeds of jobs.

An encoder reads one place after the other, with the tasks of each type there; a decoder goes over the jobs, each with
its type and where it is, and attends to the places. Source: Bao, Peng and Wu, ToN 2023, as far as it is known: sizes,
attention with several heads, and links as further places are ours.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from .networks import RowBatch, train
from .samples import AMOUNTS, KnownSetting, Samples
from .simple import Point

_WIDTH, _HEADS = 64, 4
_STEPS, _RATE = 400, 8e-3


class SequenceToSequence(nn.Module):
    """Logarithms of speeds."""

    def __init__(self, setting: KnownSetting) -> None:
        super().__init__()
        self.types, self.sites = len(setting.features), setting.sites
        self.kind, self.site = nn.Embedding(self.types, _WIDTH), nn.Embedding(self.sites, _WIDTH)
        self.there = nn.Linear(self.types * len(AMOUNTS), _WIDTH)
        self.own = nn.Linear(self.sites * len(AMOUNTS), _WIDTH)
        self.encoder = nn.GRU(_WIDTH, _WIDTH // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(_WIDTH, _WIDTH, batch_first=True)
        self.attention = nn.MultiheadAttention(_WIDTH, _HEADS, batch_first=True)
        self.out = nn.Sequential(nn.Linear(3 * _WIDTH, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, 1))

    def forward(self, x: RowBatch) -> Tensor:
        """Return the logarithm of the speed of each job, (n,)."""
        count, n = int(x.place.max()) + 1, len(x.kind)
        places = self.there(_totals(x.place * self.types + x.kind[x.job], x.amount, count * self.types, count))
        first = x.place.new_zeros(count)
        of, site = first.scatter(0, x.place, x.snapshot[x.job]), first.scatter(0, x.place, x.site)
        jobs = self.kind(x.kind) + self.own(_totals(x.job * self.sites + x.site, x.amount, n * self.sites, n))
        read, some = _padded(places + self.site(site), of)
        read = self.encoder(read)[0]
        asking, there = _padded(jobs, x.snapshot)
        decoded = self.decoder(asking)[0]
        seen = self.attention(decoded, read, read, key_padding_mask=~some, need_weights=False)[0]
        return self.out(torch.cat([jobs, decoded[there], seen[there]], dim=1))[:, 0]


def sequence_to_sequence(samples: Samples, seed: int) -> Point:
    """Fit the network, see `gangplan.learned.training.interference.networks.train`."""

    def penalty(network: nn.Module) -> Tensor:
        return 0.01 * sum(x.square().sum() for x in (network.kind.weight, network.there.weight, network.own.weight))

    return train(partial(SequenceToSequence, samples.setting), samples, seed, steps=_STEPS, rate=_RATE, penalty=penalty)


def _totals(index: Tensor, amount: Tensor, size: int, rows: int) -> Tensor:
    """Return the sums of amounts at each index below `size`, folded into `rows` rows."""
    return amount.new_zeros(size, amount.shape[1]).index_add(0, index, amount).view(rows, -1)


def _padded(values: Tensor, of: Tensor) -> tuple[Tensor, Tensor]:
    """Return values, (k, d), as one row a snapshot, (s, longest, d), and where there are some, bool (s, longest)."""
    size = torch.bincount(of)
    there = torch.arange(int(size.max())) < size[:, None]
    return pad_sequence(values.split(size.tolist()), batch_first=True), there
