"""Logs that learned models of speed are made of: who was where, and how fast each job then ran.

case = poisson(TRAINING, jobs=200)
samples = log(case, Rule("lb"), limit=2000)
samples.now.kind, samples.now.rows, samples.speed    # ragged, see `Snapshots`

A sample is one running job in one interval: its type, its rows (workers and parameter servers on each server), all
other jobs of the same snapshot with theirs, and its speed. Which links two jobs share follows from the fleet's
topology (`truths.links`), which everybody knows. A model of speeds is a `Truth`: ``model.speeds(now)`` returns epochs a
second of each job, so that ``baselines.greedy_with(model)`` and ``Case(..., truth=model)`` take it as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number

from .baselines import Policy
from .case import Case
from .environment import Environment
from .snapshots import Long, Snapshots, Truth


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Observed speeds of n jobs in s snapshots.

    Attributes:
        now: who was where.
        speed: epochs a second of each job as it reported them, float64 (n,).
    """

    now: Snapshots
    speed: FloatArray

    def __len__(self) -> int:
        return len(self.speed)

    def take(self, chosen: Long) -> Samples:
        """Return some of the snapshots."""
        now, jobs = self.now.take(chosen)
        return Samples(now, self.speed[jobs])

    def first(self, samples: int) -> Samples:
        """Return the first whole snapshots that have so many samples, or all."""
        enough = int(np.searchsorted(self.now.first, samples))
        return self.take(np.arange(min(enough, len(self.now))))

    @classmethod
    def join(cls, parts: Iterable[Samples]) -> Samples:
        """Return the samples of all parts, one after the other."""
        parts = list(parts)
        return cls(Snapshots.join([x.now for x in parts]), np.concatenate([x.speed for x in parts]))


@dataclass(slots=True, eq=False)
class Log:
    """Collects samples while a policy decides: `note` before each end of an interval.

    Args:
        truth: what the jobs report is its speed at the beginning of the interval, times noise.
        noise: deviation of the logarithm of what is reported.
        seed: of the noise.
    """

    truth: Truth
    noise: float = 0.0
    seed: int = 0
    size: int = field(default=0, init=False)
    _parts: list[Samples] = field(default_factory=list, init=False)
    _rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        require_number(self.noise, "noise")
        require_number(self.seed, "seed", whole=True)
        self._rng = np.random.default_rng(self.seed)

    def note(self, env: Environment) -> None:
        """Take a snapshot of the jobs that run."""
        if env.running:
            now = env.snapshot()
            speed = self.truth.speeds(now)
            self._parts.append(Samples(now, speed * np.exp(self.noise * self._rng.standard_normal(len(speed)))))
            self.size += len(speed)

    def samples(self) -> Samples:
        """Return all samples so far."""
        return Samples.join(self._parts)


def log(case: Case, policy: Policy, limit: int = 1_000_000, noise: float = 0.0, seed: int = 0) -> Samples:
    """Return the samples of a case under a policy, no more than `limit` but for the last snapshot.

    Args:
        case: what is simulated; its seed should be one for training.
        policy: decides.
        limit: samples.
        noise: deviation of the logarithm of what is reported.
        seed: of the noise.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    require_number(limit, "limit", positive=True, whole=True)
    env, made = Environment(case), Log(case.truth, noise, seed)
    while not env.done and made.size < limit:
        policy.place(env)
        made.note(env)
        env.end_interval()
    return made.samples()
