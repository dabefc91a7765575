"""Imitation: the order of good schedules' starts, and their options among those that there were beside the jobs before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..training.segments import segment_log_softmax
from .labels import Labelled, Shown
from .network import Network, scores_of
from .scores import PLACES, Instance

_WINDOW = 8
"""Pairs of jobs further apart than this, both in the base schedule and in the one to imitate, do not count."""
_MOST = 60.0
"""Costs of options, in units, are cut off here."""


def loss_of(
    network: Network,
    examples: Sequence[Labelled],
    rng: np.random.Generator,
    *,
    temperature: float,
    softness: float = 1.0,
) -> Tensor:
    """Return the loss of some examples, one schedule drawn of each.

    Args:
        network: scores.
        examples: labelled.
        rng: draws the schedules.
        temperature: of the draw, as a share of the objective: 0 is always the best.
        softness: of the choice of an option, in units of penalties.
    """
    drawn = [_draw(x.shown, temperature, rng) for x in examples]
    moves, worth, outs, _ = scores_of(network, [x.instance.graph for x in examples])
    pair, option, jobs, total = [], [], 0, 0
    for x, shown in zip(examples, drawn, strict=True):
        a, b = _pairs(x.instance, shown)
        pair.append(np.stack([a + jobs, b + jobs]))
        option.append((x.instance, shown, jobs, total))
        jobs += x.instance.p.n
        total += len(x.instance.p.gpus)
    a, b = torch.from_numpy(np.concatenate(pair, axis=1))
    rank = torch.from_numpy(np.concatenate([x.instance.base.rank for x in examples])).float()
    key = rank + PLACES * moves
    ordering = torch.nn.functional.softplus(key[a] - key[b]).sum() / max(jobs, 1)
    known = torch.from_numpy(np.concatenate([_known(x, s) for x, s, _, _ in option])).float()
    owner = torch.from_numpy(np.concatenate([x.p.owner + j for x, _, j, _ in option]))
    out = torch.from_numpy(np.concatenate([_left_out(x) for x, _, _, _ in option])).float()
    taken = torch.from_numpy(
        np.concatenate([np.where(s.option < 0, total + j + np.arange(x.p.n), s.option + o) for x, s, j, o in option])
    )
    logits = -torch.cat([known + worth, out + outs]) / softness
    chosen = segment_log_softmax(logits, torch.cat([owner, torch.arange(jobs)]), jobs)[taken]
    return ordering - chosen.clamp(min=-_MOST).mean()


def _draw(shown: Sequence[Shown], temperature: float, rng: np.random.Generator) -> Shown:
    if temperature <= 0:
        return shown[0]
    share = np.exp(-np.array([x.regret for x in shown]) / temperature)
    return shown[int(rng.choice(len(shown), p=share / share.sum()))]


def _pairs(instance: Instance, shown: Shown) -> tuple[np.ndarray, np.ndarray]:
    """Return jobs (a, b), each a before b in the schedule."""
    rank, later = instance.base.rank, np.argsort(np.argsort(shown.start, kind="stable"), kind="stable")
    near = np.minimum(np.abs(rank[:, None] - rank), np.abs(later[:, None] - later)) <= _WINDOW
    a, b = np.nonzero(near & (shown.start[:, None] < shown.start))
    return a, b


def _known(instance: Instance, shown: Shown) -> np.ndarray:
    """Return what the decoder knows of each option, in units: its completion and the base penalty, less the least."""
    p = instance.p
    late = ~(shown.finish <= p.deadline[p.owner] * (1 + 1e-9))
    value = p.slope[p.owner] * np.where(late, 0.0, shown.finish) + instance.base.penalty
    least = _least_of(instance, value)
    return np.where(late, _MOST, np.minimum((value - least[p.owner]) / instance.unit[p.owner], _MOST))


def _left_out(instance: Instance) -> np.ndarray:
    """Return what the decoder knows of leaving a job out, in units."""
    p = instance.p
    value = p.slope[p.owner] * np.where(np.isfinite(instance.base.finish), instance.base.finish, 0.0)
    least = _least_of(instance, value + instance.base.penalty)
    price = np.where(np.isfinite(p.price), p.price, 0.0)
    return np.where(np.isfinite(p.price), ((price - least) / instance.unit).clip(-_MOST, _MOST), _MOST)


def _least_of(instance: Instance, value: np.ndarray) -> np.ndarray:
    p, some = instance.p, np.diff(instance.p.first) > 0
    least = np.zeros(p.n)
    if len(value):
        least[some] = np.minimum.reduceat(value, p.first[:-1][some])
    return least
