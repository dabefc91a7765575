"""Who teaches at first: least work first, of the jobs in sight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ..arrays import WAITING
from ..suites import TRAINING
from .episodes import Picking
from .recipe import Settings

LANES = 8
"""Episodes side by side that are labelled: few, so that they are played to their ends."""


class Labels(NamedTuple):
    """D decisions that were taught.

    Attributes:
        rows: what the network is shown, (D, width).
        mask: which actions are allowed, bool (D, actions).
        regret: how much worse each is than the best, 0 for that, infinite where it is forbidden, float32 (D, actions).
    """

    rows: Tensor
    mask: Tensor
    regret: Tensor


def labelled(settings: Settings, seed: int) -> Labels:
    """Return decisions along episodes that the teacher plays, straying now and then."""
    import torch

    episodes = Picking(settings, seed, first=TRAINING + 5_000_000, count=min(settings.lanes, LANES))
    rows, masks, regrets = [], [], []
    for _ in range(-(-settings.labels // episodes.count)):
        rows.append(torch.from_numpy(episodes.see()))
        masks.append(torch.from_numpy(episodes.mask.copy()))
        regret = least_work(episodes)
        regrets.append(torch.from_numpy(regret))
        noise = np.where(episodes.mask, episodes.rng.random(regret.shape), np.inf)
        strays = episodes.rng.random(len(regret)) < settings.strays
        episodes.take(np.where(strays, noise.argmin(axis=1), regret.argmin(axis=1)))
    return Labels(torch.cat(rows), torch.cat(masks), torch.cat(regrets))


def stagger(episodes: Picking) -> None:
    """Play the episodes by the teacher, each a while longer than the one before, so that not all are at one time."""
    for step in range(2 * episodes.settings.mix.jobs):
        plays = step < np.linspace(0, 2 * episodes.settings.mix.jobs, episodes.count)
        episodes.batch.act(np.where(plays, least_work(episodes).argmin(axis=1), -1))


def least_work(episodes: Picking) -> NDArray[np.float32]:
    """Return the regrets 0 of the job with the least work, or of waiting if that does not fit, and 1 of others."""
    batch, slots = episodes.batch, episodes.settings.slots
    queue = batch.state.queue[:, :slots]
    work = np.take_along_axis(batch.jobs.expected * batch.jobs.gpus, queue, 1)
    first = np.where(np.arange(queue.shape[1]) < batch.state.count[:, WAITING, None], work, np.inf).argmin(axis=1)
    every = np.arange(len(batch))
    best = np.where(batch.mask[every, first], first, slots)
    regret = np.where(batch.mask, 1.0, np.inf).astype(np.float32)
    regret[every, best] = 0.0
    return regret
