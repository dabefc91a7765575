"""The models of speed by name, and means with deviations from any: members that have not seen some combinations.

Each combination of types is left out by two members. Their predictions of it say how far off the model is on what it
has not seen, and how much of that the members' own disagreement tells: the deviation is sqrt(a^2 + (b s)^2), with s the
deviation among members and a, b from 0 on of least continuous ranked probability score (Gneiting and Raftery, JASA
2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from math import erf

import numpy as np

from gangplan.instances.arrays import FloatArray, require_choice
from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.lazy import Later
from gangplan.simulator.snapshots import Snapshots

from .samples import KnownSetting, Samples
from .simple import Fit, Point, boosted_trees, mean_ratio, ridge

MODELS: dict[str, tuple[Fit, tuple[str, ...]]] = {
    "mean ratio": (mean_ratio, ()),
    "ridge": (ridge, ()),
    "trees": (boosted_trees, ("sklearn",)),
    "sequence": (Later(f"{__package__}.sequence:sequence_to_sequence"), ("torch",)),
    "pressure": (Later(f"{__package__}.pressure:pressure"), ("torch",)),
}
"""What fits each, and the packages that it needs; `pressure` is ours, `sequence` Harmony's."""
_FOLDS = 4
_LEAST = 20


@dataclass(frozen=True, slots=True, eq=False)
class SpeedPredictor:
    """Predicts how fast jobs run where they are.

    Attributes:
        setting: where it was fitted.
        members: predict the logarithm of relative speeds.
        floor, share: a and b.
    """

    setting: KnownSetting
    members: tuple[Point, ...]
    floor: float
    share: float

    def predict(self, now: Snapshots) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation of the logarithm of each job's speed relative to its workers alone, (n,) each."""
        asked = Samples(self.setting, now, np.full(len(now.kind), np.nan))
        found = np.stack([member(asked) for member in self.members])
        return found.mean(axis=0), np.hypot(self.floor, self.share * found.std(axis=0, ddof=1))

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return the speed of each job in the unit of the log, float64 (n,); so a model stands in for a truth."""
        return np.asarray(np.exp(self.predict(now)[0]) * self.setting.unit[now.kind] * now.total(now.workers))


def available() -> list[str]:
    """Return the models whose packages are installed."""
    return [name for name, (_, needs) in MODELS.items() if all(map(find_spec, needs))]


def fit(samples: Samples, seed: int = 0, *, model: str = "pressure") -> SpeedPredictor:
    """Fit a model of speeds to a log: an ensemble, each member without a quarter of the combinations.

    Args:
        samples: the log, with at least 20 known speeds, of two combinations or more.
        seed: of what members of the ensemble do not see, and of their weights.
        model: one of `MODELS`.
    """
    require_choice(model, "model", MODELS)
    make, needs = MODELS[model]
    missing = [name for name in needs if find_spec(name) is None]
    if missing:
        raise InstanceError("model", f"{model!r} needs {', '.join(missing)}; {extra('learn')}")
    known, each = samples.known, samples.combination()
    combinations = np.unique(each[each >= 0])
    if known.sum() < _LEAST or len(combinations) < 2:
        words = f"{known.sum()} speeds of {len(combinations)} combinations are too few to hold some out"
        raise InstanceError("samples", words)
    rng, folds = np.random.default_rng(seed), min(_FOLDS, len(combinations))
    members: list[Point] = []
    unseen = np.full((2, len(known)), np.nan)
    for half in unseen:
        rng.shuffle(combinations)
        alone = rng.integers(0, folds, len(known))  # jobs without others are dealt out one by one
        for k in range(folds):
            out = samples.touching(combinations[k::folds])
            out |= (alone == k) & ~samples.touching(combinations)
            if not (known & ~out).any():
                continue
            members.append(make(samples.only(known & ~out), int(rng.integers(2**31))))
            half[out] = members[-1](samples)[out]
    mean, spread = unseen.mean(axis=0), np.abs(unseen[0] - unseen[1]) / np.sqrt(2)
    ok = known & np.isfinite(mean)
    return SpeedPredictor(samples.setting, tuple(members), *_scale(np.log(samples.speed[ok]) - mean[ok], spread[ok]))


def _scale(error: FloatArray, spread: FloatArray) -> tuple[float, float]:
    """Return a and b with the least mean score of normal distributions of deviation sqrt(a^2 + (b spread)^2)."""
    errors = np.vectorize(erf, otypes=[float])

    def score(logs: FloatArray) -> float:
        deviation = np.hypot(np.exp(logs[0]), np.exp(logs[1]) * spread)
        z = error / deviation
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return float((deviation * (z * errors(z / np.sqrt(2)) + 2 * density - 1 / np.sqrt(np.pi))).mean())

    best, step = np.array([np.log(np.abs(error).mean() + 1e-6), 0.0]), 1.0
    least = score(best)
    while step > 1e-3:  # a pattern search (Hooke and Jeeves 1961)
        tries = [(score(best + move), *(best + move)) for move in step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])]
        found, *logs = min(tries)
        if found < least:
            least, best = found, np.array(logs)
        else:
            step /= 2
    return float(np.exp(best[0])), float(np.exp(best[1]))
