"""Episodes played side by side, by the network, with exploration by rules; and what was seen in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.instances.arrays import FloatArray
from gangplan.learned.training.interference.models import MODELS, SpeedPredictor
from gangplan.simulator.snapshots import Snapshots

from ..interference.baselines import Places
from ..interference.case import InterferenceCase
from ..interference.cases import TRAINING
from ..interference.environment import Environment
from ..interference.samples import Log, log, log_samples
from .observe import RULES, Lane
from .policy import log_probabilities
from .recipe import HarmonySettings

MEMBERS = 2
"""Of the reward model, each fitted to the whole log."""
_RULES = ("lb", "tetris", "lif")
_JOBS = 200


class Predicted(Environment):
    """An environment in which the speeds at the beginning of an interval, as given, hold to its end.

    Attributes:
        given: epochs a second of the running jobs in their order; set before `end_interval`.
    """

    given: FloatArray

    def _advance(self, now: Snapshots, left: FloatArray, until: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        needs = left / self.given
        end = np.where(needs <= until - self.now, self.now + needs, np.inf)
        return np.minimum(left, self.given * (until - self.now)), end, self.given


def make_log(settings: HarmonySettings, seed: int) -> Log:
    """Return what the true cluster reported under the rules, as published and tuned, an equal part under each."""
    rules = [replace(settings, form=form).rule(score) for form in ("published", "tuned") for score in _RULES]
    cases = [settings.make(TRAINING + 100 * seed + at, _JOBS) for at in range(len(rules))]
    return logged(cases, rules, settings.samples, settings.noise, seed)


def logged(cases: Sequence[InterferenceCase], rules: Sequence[Places], samples: int, noise: float, seed: int) -> Log:
    """Return what was reported in each case under its rule, an equal part of the samples of each."""
    share, both = -(-samples // len(rules)), enumerate(zip(cases, rules, strict=True), seed * len(rules))
    return Log.join([log(case, rule, share, noise, at) for at, (case, rule) in both])


def reward_model(settings: HarmonySettings, seed: int) -> SpeedPredictor | None:
    """Return the model that pays, None if the true cluster does."""
    if settings.reward_model == "off":
        return None
    made, case = make_log(settings, seed), settings.make(TRAINING, 1)
    return fitted(settings.reward_model, case, made, settings.samples, seed)


def fitted(name: str, case: InterferenceCase, made: Log, samples: int, seed: int) -> SpeedPredictor:
    """Return a model of `MODELS`, fitted to the first samples of a log of the case's cluster."""
    known = log_samples(case, made).first(samples)
    members = tuple(MODELS[name][0](known, seed + i) for i in range(MEMBERS))
    return SpeedPredictor(known.setting, members, floor=0.0, share=1.0)


def environment(
    settings: HarmonySettings, model: SpeedPredictor | None, seed: int, jobs: int | None = None
) -> Environment:
    """Return an environment that runs by the model, or by the true cluster if there is none."""
    case = settings.make(seed, jobs)
    return Environment(case) if model is None else Predicted(replace(case, truth=model))


def end_intervals(envs: Sequence[Environment], model: SpeedPredictor | None) -> list[float]:
    """Run each environment to its next interval, speeds predicted for all at once; return the rewards."""
    busy = [env for env in envs if env.running]
    if model is not None and busy:
        speeds = model.speeds(Snapshots.join([env.snapshot() for env in busy]))
        ends = np.cumsum([len(env.running) for env in busy])[:-1]
        for env, given in zip(busy, np.split(speeds, ends), strict=True):
            assert isinstance(env, Predicted)
            env.given = given
    return [env.end_interval() for env in envs]


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


def mixture(probability: FloatArray, explored: Sequence[int], explore: float) -> FloatArray:
    """Return the probabilities of a policy that with probability `explore` takes one of the explored actions."""
    found = (1 - explore) * probability
    np.add.at(found, list(explored), explore / len(explored))
    return found


def play(
    envs: Sequence[Environment],
    settings: HarmonySettings,
    network: nn.Module,
    model: SpeedPredictor | None,
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
