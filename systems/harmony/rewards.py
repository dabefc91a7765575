"""Rewards: a model of speed fitted to a log of the true cluster, and environments that run by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.learned.interference.ensemble import Model
from gangplan.learned.interference.models import MODELS
from gangplan.simulator.snapshots import Snapshots

from ..interference.baselines import Policy
from ..interference.case import Case
from ..interference.cases import TRAINING
from ..interference.environment import Environment
from ..interference.samples import Log, log, log_samples
from .recipe import Settings

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


def make_log(settings: Settings, seed: int) -> Log:
    """Return what the true cluster reported under the rules, as published and tuned, an equal part under each."""
    rules = [replace(settings, form=form).rule(score) for form in ("published", "tuned") for score in _RULES]
    cases = [settings.make(TRAINING + 100 * seed + at, _JOBS) for at in range(len(rules))]
    return logged(cases, rules, settings.samples, settings.noise, seed)


def logged(cases: Sequence[Case], rules: Sequence[Policy], samples: int, noise: float, seed: int) -> Log:
    """Return what was reported in each case under its rule, an equal part of the samples of each."""
    share, both = -(-samples // len(rules)), enumerate(zip(cases, rules, strict=True), seed * len(rules))
    return Log.join([log(case, rule, share, noise, at) for at, (case, rule) in both])


def reward_model(settings: Settings, seed: int) -> Model | None:
    """Return the model that pays, None if the true cluster does."""
    if settings.reward_model == "off":
        return None
    made, case = make_log(settings, seed), settings.make(TRAINING, 1)
    return fitted(settings.reward_model, case, made, settings.samples, seed)


def fitted(name: str, case: Case, made: Log, samples: int, seed: int) -> Model:
    """Return a model of `MODELS`, fitted to the first samples of a log of the case's cluster."""
    known = log_samples(case, made).first(samples)
    members = tuple(MODELS[name][0](known, seed + i) for i in range(MEMBERS))
    return Model(known.setting, members, floor=0.0, share=1.0)


def environment(settings: Settings, model: Model | None, seed: int, jobs: int | None = None) -> Environment:
    """Return an environment that runs by the model, or by the true cluster if there is none."""
    case = settings.make(seed, jobs)
    return Environment(case) if model is None else Predicted(replace(case, truth=model))


def end_intervals(envs: Sequence[Environment], model: Model | None) -> list[float]:
    """Run each environment to its next interval, speeds predicted for all at once; return the rewards."""
    busy = [env for env in envs if env.running]
    if model is not None and busy:
        speeds = model.speeds(Snapshots.join([env.snapshot() for env in busy]))
        ends = np.cumsum([len(env.running) for env in busy])[:-1]
        for env, given in zip(busy, np.split(speeds, ends), strict=True):
            assert isinstance(env, Predicted)
            env.given = given
    return [env.end_interval() for env in envs]
