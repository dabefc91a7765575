"""What the policy is trained on: mixes of jobs on the published cluster, each a little other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Jobs, jobs_of
from ..suites import MIXES, TRAINING, Suite, suite, told_means

KINDS = ("small", "expensive", "mixed", "loaded", "uncertain", "heavy")
"""Of episodes, in turn; ``heavy`` is like traces: lengths lognormal, gangs of powers of two, each its own intensity."""
POOL = 2000
"""Jobs that futures are drawn from."""


def episode(number: int, jobs: int = 150) -> tuple[Jobs, Jobs]:
    """Return the jobs of a training episode, and others like them to draw futures from."""
    kind, seed = KINDS[number % len(KINDS)], TRAINING + 2 * number
    made = suite("small" if kind == "heavy" else kind)
    rng = np.random.default_rng(seed)
    pace = float(rng.uniform(0.75, 1.15))
    spread, most = float(rng.uniform(0.8, 1.8)), int(rng.integers(3, 6))
    found = []
    for own, n in ((seed, jobs), (seed + 1, POOL)):
        if kind == "heavy":
            found.append(_heavy(own, n, made, pace, spread, most))
            continue
        mix = MIXES[kind]
        mix = replace(mix, jobs=n, arrival=min(mix.arrival * pace, 1.0))
        work, told = told_means(mix)(own) if kind == "uncertain" else (mix.draw(own), None)
        found.append(jobs_of(work, made.proximity, told))
    return found[0], found[1]


def _heavy(seed: int, n: int, made: Suite, pace: float, spread: float, most: int) -> Jobs:
    """Return jobs of a load of about `pace`."""
    rng = np.random.default_rng(seed)
    gpus = 2 ** np.minimum(rng.geometric(0.45, n) - 1, most)
    work = rng.lognormal(0.0, spread, n) * 100
    intensity = rng.choice([0.2, 0.5, 1.0, 2.0, 4.0], n)
    mean = (
        100 * np.exp(spread**2 / 2) * float((2 ** np.minimum(np.arange(12), most) * 0.45 * 0.55 ** np.arange(12)).sum())
    )
    submit = np.cumsum(rng.exponential(1.25 * mean / (pace * int(made.fleet.gpus.sum())), n))
    return Jobs(submit, work, work, gpus.astype(np.int64), intensity, np.append(0, np.cumsum(gpus)).astype(np.int64))
