"""What trains any network that predicts speeds, and what networks get to see of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import huber_loss

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.processes import one_thread

from .samples import Samples, rows_of
from .simple import Point

_DELTA = 0.1
"""Errors of the logarithm from which on they count by their size, not its square: logs have outliers."""


class RowBatch(NamedTuple):
    """Jobs and their rows as tensors, see `gangplan.learned.training.interference.samples.JobRows`.

    Attributes:
        kind, snapshot: of each job, int64 (n,).
        job, place, site: of each row, int64 (m,).
        link: whether a row is on one, bool (m,).
        amount: of each row, float32 (m, 4).
    """

    kind: Tensor
    snapshot: Tensor
    job: Tensor
    place: Tensor
    site: Tensor
    link: Tensor
    amount: Tensor


def batch_of(samples: Samples) -> RowBatch:
    """Return the rows of samples as tensors."""
    rows, now = rows_of(samples.now, samples.setting), samples.now
    parts = (now.kind, now.of, rows.job, rows.place, rows.site, rows.link, rows.amount.astype(np.float32))
    return RowBatch(*map(torch.from_numpy, parts))


def train(
    make: Callable[[], nn.Module],
    samples: Samples,
    seed: int,
    *,
    steps: int,
    rate: float,
    penalty: Callable[[nn.Module], Tensor],
    minibatch: int = 250,
) -> Point:
    """Train a network on the logarithms of known speeds and return what predicts by it.

    Args:
        make: makes the network, from a `RowBatch` to the logarithm of the speed of each job, (n,).
        samples: minibatches are whole snapshots of them.
        steps: of Adam, on one minibatch each.
        rate: of learning, at its most.
        penalty: of a network's weights; the more samples, the less it counts.
        minibatch: jobs, about.
    """
    with torch.random.fork_rng(devices=[]), one_thread():
        torch.manual_seed(seed)
        network = make()
        pieces = max(1, round(len(samples.speed) / minibatch))
        parts = []
        for chosen in np.array_split(np.random.default_rng(seed).permutation(len(samples.now)), pieces):
            some = samples.take(chosen)
            target = np.log(some.speed[some.known])
            if len(target):
                parts.append((batch_of(some), torch.from_numpy(some.known), torch.from_numpy(target).float()))
        optimizer = torch.optim.Adam(network.parameters(), rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
        count = int(samples.known.sum())
        for step in range(steps):
            batch, known, target = parts[step % len(parts)]
            loss = huber_loss(network(batch)[known], target, delta=_DELTA) / _DELTA + penalty(network) / count
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 10.0)
            optimizer.step()
            schedule.step()
    network.eval()

    def predict(asked: Samples) -> FloatArray:
        with torch.inference_mode(), one_thread():
            return np.asarray(network(batch_of(asked)).numpy(), dtype=float)

    return predict
