"""Mixes of jobs: lengths and gangs as TopDRL draws them, at several loads and sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, check_fields, limited
from gangplan.instances.workload import Workload

TEST, VALIDATION, TRAINING = 0, 1_000_000, 2_000_000
"""The first seeds to test on, to choose by, and to learn from."""

SHARES = (0.5, 0.1, 0.2, 0.2)
"""Of the jobs, in each of the four ranges."""
CUTS = (0.0, 0.3, 0.4, 0.8, 1.0)
"""Ends of the ranges, as shares of the longest and of the largest job."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Jobs of up to `length` steps on up to `gpus` GPUs (Ayadi et al., JPDC 204, 2025).

    Attributes:
        jobs: how many.
        arrival: the probability that a job arrives in a step.
        length: of the longest, steps.
        gpus: of the largest.
        step: seconds.
        rush: so many times as fast the middle third of the jobs arrives.
    """

    jobs: int = limited(150, positive=True)
    arrival: float = limited(0.6, most=1)
    length: int = limited(30, positive=True)
    gpus: int = limited(8, positive=True)
    step: float = limited(1.0, positive=True)
    rush: float = limited(1.0, positive=True)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.arrival:
            raise InstanceError("arrival", "is 0: no job ever arrives")

    def draw(self, seed: int) -> Workload:
        """Return the workload of a seed."""
        rng = np.random.default_rng(seed)
        n = self.jobs
        length, gpus = _sizes(rng, n, self.length), _sizes(rng, n, self.gpus)
        gaps = rng.geometric(self.arrival, n).astype(np.float64)
        gaps[n // 3 : 2 * n // 3] /= self.rush
        return Workload(
            names=tuple(map(str, range(n))),
            submit=(np.cumsum(gaps) - 1) * self.step,
            gpus=gpus.astype(np.int32),
            duration=length * self.step,
        )


SMALL, LARGE = Mix(), Mix(jobs=1000)
"""The published sizes: 150 jobs with 20 of the queue in sight and a backlog of 5, and 1,000 with 100 and 10."""


def _sizes(rng: np.random.Generator, n: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return n whole numbers from 1 to `most`, each range's share of them uniform in it."""
    kind = rng.choice(len(SHARES), n, p=SHARES)
    cuts = np.array(CUTS) * most
    low, high = np.maximum(np.ceil(cuts[kind]), 1.0), np.maximum(np.ceil(cuts[kind + 1]) - 1, 1.0)
    high = np.where(kind == len(SHARES) - 1, most, high)
    return np.asarray(rng.integers(low, np.maximum(high, low) + 1).astype(np.float64))


MIXES = {
    "small": SMALL,
    "large": LARGE,
    "expensive": replace(SMALL, arrival=0.36),
    "mixed": replace(SMALL, gpus=32, arrival=0.073),
    "loaded": replace(SMALL, arrival=0.71),
    "uncertain": SMALL,
    "rush": replace(SMALL, jobs=450, rush=2.0),
}
"""All but ``loaded`` and ``rush``, 1.2, have a load of about 1: GPU seconds that the jobs take where they run fastest,
over those of the cluster until the last arrives. Communication is four times as dear in ``expensive``; gangs of
``mixed`` have up to 32 GPUs; of ``uncertain`` policies know only the mean of each of four classes of jobs, about which
durations are lognormal. In ``rush`` the middle third of the jobs comes twice as fast: by least work 20 wait on average,
where 4 do in ``small``."""
SPREAD = 0.8
"""Standard deviation of the logarithm of durations in ``uncertain``."""


def told_means(mix: Mix) -> Callable[[int], tuple[Workload, FloatArray]]:
    """Return what draws jobs of lognormal durations, and tells the means of their classes."""
    cuts = np.array(CUTS) * mix.length

    def draw(seed: int) -> tuple[Workload, FloatArray]:
        work = mix.draw(seed)
        rng = np.random.default_rng([seed, 1])
        kind = np.searchsorted(cuts[1:-1], work.duration / mix.step, side="right")
        mean = ((cuts[:-1] + cuts[1:]) / 2)[kind] * mix.step
        factor = rng.lognormal(-(SPREAD**2) / 2, SPREAD, len(mean))
        return replace(work, duration=mean * factor), mean

    return draw
