"""Episodes played side by side, by the network, with exploration by rules; and what was seen in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.instances.arrays import FloatArray
from gangplan.learned.interference.ensemble import Model

from ..interference.environment import Environment
from .observe import RULES, Lane
from .recipe import Settings
from .rewards import end_intervals


class Seen(NamedTuple):
    """N decisions, episode after episode; each is to place a task, or to end the interval.

    Attributes:
        rows: what was seen, float16 (N, width).
        mask: which actions were allowed, bool (N, actions).
        action: the one taken, int64 (N,).
        behaviour: logarithm of the probability with which it was taken, float32 (N,).
        reward: of the interval if it ended, else 0, float32 (N,).
        discount: 1 within an interval, 0 where the episode ended, float32 (N,).
    """

    rows: Tensor
    mask: Tensor
    action: Tensor
    behaviour: Tensor
    reward: Tensor
    discount: Tensor


def log_probabilities(network: nn.Module, rows: Tensor, mask: Tensor) -> Tensor:
    """Return the logarithm of the probability of each action, minus infinity where it is not allowed."""
    return network(rows.float()).masked_fill(~mask, float("-inf")).log_softmax(dim=1)


def mixture(probability: FloatArray, explored: Sequence[int], explore: float) -> FloatArray:
    """Return the probabilities of a policy that with probability `explore` takes one of the explored actions."""
    found = (1 - explore) * probability
    np.add.at(found, list(explored), explore / len(explored))
    return found


def play(
    envs: Sequence[Environment],
    settings: Settings,
    network: nn.Module,
    model: Model | None,
    rng: np.random.Generator | None,
) -> Seen | None:
    """Play environments to their ends.

    Args:
        model: predicts the rewards, None if the true cluster pays.
        rng: draws the actions; None to take the best and keep nothing.
    """
    lanes = [Lane(env, settings) for env in envs]
    kept: list[list[tuple[np.ndarray, np.ndarray, int, float, float, float]]] = [[] for _ in lanes]
    while active := [at for at, lane in enumerate(lanes) if not lane.env.done]:
        rows, masks = (np.stack([getattr(lanes[at], x) for at in active]) for x in ("seen", "mask"))
        with torch.inference_mode():
            logs = log_probabilities(network, torch.from_numpy(rows), torch.from_numpy(masks)).double().exp().numpy()
        taken = [_choose(lanes[at], p, settings.explore, rng) for at, p in zip(active, logs, strict=True)]
        ends = [i for i, (action, _) in enumerate(taken) if action == masks.shape[1] - 1]
        paid = dict(zip(ends, end_intervals([lanes[active[i]].env for i in ends], model), strict=True))
        for i, (at, (action, chance)) in enumerate(zip(active, taken, strict=True)):
            lane = lanes[at]
            if i not in paid:
                lane.place(action)
            discount = 1.0 if i not in paid else 0.0 if lane.env.done else settings.gamma
            if rng is not None:
                kept[at].append((rows[i].astype(np.float16), masks[i], action, chance, paid.get(i, 0.0), discount))
            lane.look()
    if rng is None:
        return None
    columns = list(zip(*(step for mine in kept for step in mine), strict=True))
    kinds = (np.float16, np.bool_, np.int64, np.float32, np.float32, np.float32)
    return Seen(*(torch.from_numpy(np.array(x, dtype=kind)) for x, kind in zip(columns, kinds, strict=True)))


def _choose(lane: Lane, probability: FloatArray, explore: float, rng: np.random.Generator | None) -> tuple[int, float]:
    """Return an action, and the logarithm of the probability with which it is taken."""
    if rng is None or lane.mask.sum() == 1:
        return int(probability.argmax()), 0.0
    if explore:
        probability = mixture(probability, [lane.explored(score) for score in RULES], explore)
    action = int(rng.choice(len(probability), p=probability / probability.sum()))
    return action, float(np.log(probability[action]))
