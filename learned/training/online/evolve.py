"""Search for a formula that is better than the rule `Patient` on all grounds, by an evolution strategy.

Each update draws formulas about a mean, plays them and `Patient` on the same runs of every ground, and moves the mean
to the better half: the strategy is sep-CMA-ES (Ros and Hansen, PPSN 2008), which adapts a deviation for each
weight. At each validation the mean's formula is made shorter, as long as that costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.published import DATA
from gangplan.simulator.gangs.formula import HOLD, PATIENT, TERMS, words
from gangplan.simulator.gangs.mixes import TRAINING, VALIDATION
from gangplan.simulator.gangs.traffic import TRAIN, VALIDATE, Traffic, grounds
from gangplan.simulator.metrics import interval

from ...policy.weights import Tensors
from ..checkpoint import read_checkpoint
from ..loop import INTERRUPTED, train

DRAWN = 16
"""Formulas of an update."""
SCALE = np.array([0.2, 0.3, 0.1, 0.1, 0.5, 0.3, 0.15, 0.2, 0.2, 0.2, 0.05])
"""Deviation of each weight at first."""
MORE = 100
"""Updates after which each ground is played once more in an update, up to `SEEDS` times: finer differences count."""
WORSE = 0.5
"""Weight of the grounds on which a formula is worse: their log ratios count so much more."""
EVERY = 10
"""Updates from one validation to the next."""
SEEDS, SHOWN = 6, 10
"""Runs of each ground at a validation, and of that which is shown in the end."""
PRICE = 5e-4
"""Of the score, that a term has to be worth; those that are less are left out."""


class Runs:
    """Runs of some grounds, and what `Patient` comes to on each.

    Args:
        grounds: what is played.
        seeds: of each.
    """

    def __init__(self, grounds: Sequence[Traffic], seeds: Sequence[int]) -> None:
        self.names, self._seeds = [x.name for x in grounds], len(seeds)
        self._cases = [ground.episode(seed) for ground in grounds for seed in seeds]
        self.base = self.means(PATIENT)

    def means(self, weights: FloatArray) -> FloatArray:
        """Return the mean JCT by a formula, seconds, float64 (grounds, seeds)."""
        return np.array([run.by(weights) for run in self._cases]).reshape(len(self.names), self._seeds)

    def logs(self, weights: FloatArray) -> FloatArray:
        """Return the mean logarithm of the mean JCT over that by `Patient`, of each ground, float64 (grounds,)."""
        return np.asarray(np.log(self.means(weights) / self.base).mean(axis=1))

    def score(self, weights: FloatArray) -> float:
        """Return what is to be made small: the mean of `logs`, of which those above 0 count more."""
        logs = self.logs(weights)
        return float(logs.mean() + WORSE * np.maximum(logs, 0.0).mean())

    def rows(self, weights: FloatArray) -> list[dict[str, Any]]:
        """Return the mean JCT of each ground, by what share it is above `Patient`'s, and half the 95% interval."""
        means, rows = self.means(weights), list[dict[str, Any]]()
        for name, mine, theirs in zip(self.names, means, self.base, strict=True):
            share, margin = interval((mine - theirs) / theirs.mean())
            more = {"patient": float(theirs.mean()), "formula": float(mine.mean()), "above": share, "margin": margin}
            rows.append({"ground": name, "runs": len(mine), **more})
        return rows


class Evolution:
    """A `Learner` of formulas: its tensors are a mean, the deviations about it, and two paths of the mean.

    Args:
        train, validate: grounds.
        seed: of everything drawn.

    Attributes:
        formula: the one that was validated last, shorter than the mean.
    """

    def __init__(self, train: Sequence[Traffic], validate: Sequence[Traffic], seed: int = 0) -> None:
        self._train, self._seed = train, seed
        self._judged = Runs(validate, range(VALIDATION, VALIDATION + SEEDS))
        self._mean, self._variance, self._step, self.formula = PATIENT.copy(), np.ones(len(TERMS)), 1.0, PATIENT.copy()
        self._path, self._fast = np.zeros(len(TERMS)), np.zeros(len(TERMS))

    def update(self, step: int) -> dict[str, float]:
        """Draw formulas, play them, and move to the better half."""
        n, rng = len(TERMS), np.random.default_rng([self._seed, step])
        runs = Runs(self._train, range(first := TRAINING + SEEDS * step, first + min(1 + step // MORE, SEEDS)))
        deviation = self._step * SCALE * np.sqrt(self._variance)
        drawn = _bounded(self._mean + deviation * rng.normal(size=(DRAWN, n)))
        scores = np.array([runs.score(x) for x in drawn])
        weight = np.log(DRAWN / 2 + 0.5) - np.log(np.arange(1, DRAWN // 2 + 1))
        weight /= weight.sum()
        mass = 1 / (weight**2).sum()
        best = (drawn[np.argsort(scores)[: len(weight)]] - self._mean) / (self._step * SCALE)
        moved = weight @ best
        self._mean = _bounded(self._mean + self._step * SCALE * moved)
        slow, turn = (4 + mass / n) / (n + 4 + 2 * mass / n), (mass + 2) / (n + mass + 5)
        one, rest = 2 / ((n + 1.3) ** 2 + mass), 2 * (mass - 2 + 1 / mass) / ((n + 2) ** 2 + mass)
        one, rest = (x * (n + 2) / 3 for x in (one, rest))  # a diagonal is learned faster
        self._fast = (1 - turn) * self._fast + np.sqrt(turn * (2 - turn) * mass) * moved / np.sqrt(self._variance)
        self._path = (1 - slow) * self._path + np.sqrt(slow * (2 - slow) * mass) * moved
        kept = max(1 - one - rest, 0.0)
        self._variance = kept * self._variance + one * self._path**2 + rest * (weight @ best**2)
        usual = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
        self._step *= float(np.exp(min(turn / (1 + turn) * (np.linalg.norm(self._fast) / usual - 1), 1.0)))
        return {"score": float(scores.mean()), "best": float(scores.min()), "step": self._step}

    def validate(self) -> dict[str, float]:
        """Shorten the mean's formula, and return what it comes to on each validation ground."""
        runs, formula = self._judged, _short(self._mean)
        score = runs.score(formula)
        for term in np.argsort(np.abs(formula) / SCALE).tolist():
            other = formula.copy()
            other[term] = 0.0
            if formula[term] and (value := runs.score(other)) < score + PRICE:
                formula, score = other, min(score, value)
        self.formula = formula
        logs = dict(zip(runs.names, runs.logs(formula).tolist(), strict=True))
        return {"score": runs.score(formula), **logs, "terms": float(np.count_nonzero(formula))}

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """See `Learner`."""
        import torch

        parts = {"policy.formula": self.formula, "mean": self._mean, "variance": self._variance}
        parts |= {"path": self._path, "fast": self._fast}
        return {name: torch.from_numpy(x.copy()) for name, x in parts.items()}, {"step": self._step}

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """See `Learner`."""
        own = {name: x.numpy().copy() for name, x in tensors.items()}
        self.formula, self._mean, self._variance = own["policy.formula"], own["mean"], own["variance"]
        self._path, self._fast, self._step = own["path"], own["fast"], float(plain["step"])


def search(
    folder: str | Path, data: str = DATA, *, seed: int = 0, updates: int = 2000, minutes: float | None = None,
    resume: bool = False, progress: Callable[[float], None] = lambda share: None,
) -> dict[str, Any]:  # fmt: skip
    """Search as `train` does, and return the best formula with what it comes to on fresh runs of validation grounds.

    Args:
        folder: see `train`, as for the others.
        data: folder of traces; grounds of those that are not there are left out.
    """
    if minutes is not None and not minutes >= 0:
        raise InstanceError("minutes", f"{minutes!r} is not a number from 0 on")
    evolution = Evolution(grounds(TRAIN, data), chosen := grounds(VALIDATE, data), seed)
    limits: dict[str, Any] = {"updates": updates, "minutes": minutes, "resume": resume, "progress": progress}
    report = train(evolution, folder, validate_every=EVERY, checkpoint_every=60.0, **limits)
    weights = read_checkpoint(folder)[0]["policy.formula"].numpy()
    rows = Runs(chosen, range(VALIDATION + SEEDS, VALIDATION + SEEDS + SHOWN)).rows(weights)
    named = {name: float(x) for name, x in zip(TERMS, weights, strict=True) if x}
    of = {"updates": report.updates, "seconds": report.seconds, "interrupted": report.reason == INTERRUPTED}
    return {"formula": words(weights), "weights": named, "grounds": rows, **of}


def _bounded(weights: FloatArray) -> FloatArray:
    """Return weights of which `HOLD` is from 0 to 1."""
    weights[..., HOLD] = np.clip(weights[..., HOLD], 0.0, 1.0)
    return weights


def _short(weights: FloatArray) -> FloatArray:
    """Return weights as a formula in words has them."""
    return np.array([float(f"{x:.3g}") for x in weights])
