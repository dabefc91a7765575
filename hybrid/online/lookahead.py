"""The tier that looks ahead: how much room to keep for short jobs, by playing the next jobs through."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from .decision import Candidate
from .scene import Scene

LIKE = 2048
"""Jobs submitted last that are remembered: what comes next is sampled from them."""
LEAST = 64
"""Jobs that must be remembered before it looks ahead."""
_FORGET = 0.97
"""What is left of the weight of what earlier rounds found, after each round."""
_MARGIN = 0.05
"""By how much another amount must be better than the present one, as a share, to take its place."""


def _warm() -> None:
    """Have the rollout compiled, or read from the cache, before a deadline runs."""
    from .rollout import rollout

    whole, some = np.zeros(1, dtype=np.int64), np.ones(1)
    rollout(0.0, whole + 1, 1, some, whole, whole, whole, 1, some, whole + 1, some, whole, some, whole + 1, 1)


class Lookahead:
    """Rounds of rollouts, one future a round, the same for all amounts; what they find adds up over the decisions.

    A step is one rollout, so that a decision can make as many as it has time for; a round goes on in the next one.

    Args:
        shares: the amounts, see `Rule.caps`; the first is what is used before anything is known.
        horizon: jobs that arrive in a future.
        seed: of the samples.
    """

    def __init__(self, shares: Sequence[float], horizon: int, seed: int) -> None:
        self.shares, self.horizon = tuple(shares), horizon
        self.rng = np.random.default_rng(seed)
        self.weight, self.rounds = 0.0, 0
        self.sums = np.zeros(len(self.shares))
        self.best = 0
        self.past: deque[tuple[float, int, float]] = deque(maxlen=LIKE)
        self.took = 0.0
        """Seconds that the last step took."""
        self.found: list[float] = []
        self._game: tuple[Any, ...] = ()
        self._count = 1
        _warm()

    @property
    def share(self) -> float:
        """The amount to be used now."""
        return self.shares[self.best]

    def saw(self, submit: float, gpus: int, seconds: float) -> None:
        """Remember a job that was submitted."""
        self.past.append((submit, gpus, seconds))

    @property
    def ready(self) -> bool:
        """Whether enough is known to look ahead."""
        return len(self.past) >= LEAST

    @property
    def open(self) -> bool:
        """Whether a round has begun and is not over."""
        return bool(self._game)

    def begin(self, scene: Scene, classes: Sequence[float], order: float) -> None:
        """Begin a round: sample a future.

        Args:
            scene: what there is.
            classes: the lengths at which classes begin, seconds.
            order: the exponent of GPUs in the keys.
        """
        wait = len(scene.need)
        arrive, need, lasts = self._future(scene.now)
        need = np.minimum(need, scene.size * int(np.count_nonzero(scene.free >= 0)))
        length = np.searchsorted(np.array(classes), lasts, "right")
        self._count = wait + len(need)
        self.found = []
        self._game = (
            *(scene.now, scene.free, scene.size, scene.end, scene.node, scene.gpus, scene.kind, wait),
            np.concatenate([np.full(wait, scene.now), arrive]),
            np.concatenate([scene.need, need]),
            np.concatenate([scene.lasts, lasts]),
            np.concatenate([scene.length, length]).astype(np.int64),
            np.concatenate([scene.key, lasts * need.astype(float) ** order]),
        )

    def step(self, caps: Sequence[int]) -> bool:
        """Play the future through with the next amount; return whether that ended a round and changed the amount.

        Args:
            caps: of the amount ``shares[len(found)]``.
        """
        from .rollout import rollout

        play: Any = rollout
        began = time.perf_counter()
        total = play(*self._game, np.array(caps, dtype=np.int64), self._count)
        self.found.append(float(total) / max(1, self._count))
        self.took = time.perf_counter() - began
        if len(self.found) < len(self.shares):
            return False
        self._game = ()
        self.sums = self.sums * _FORGET + np.array(self.found)
        self.weight = self.weight * _FORGET + 1.0
        self.rounds += 1
        best = int(np.argmin(self.sums))
        if self.sums[best] >= self.sums[self.best] * (1 - _MARGIN):
            return False
        self.best = best
        return True

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the amounts with the mean time that jobs were there, seconds."""
        if not self.rounds:
            return ()
        means = self.sums / self.weight
        words = [f"jobs of the longest class hold at most {share:.0%} of the GPUs" for share in self.shares]
        why = [
            ""
            if i == self.best
            else f"{mean / means[self.best] - 1:+.1%} in {self.rounds} sampled futures"
            if mean >= means[self.best]
            else f"better by less than {_MARGIN:.0%}"
            for i, mean in enumerate(means.tolist())
        ]
        return tuple(Candidate(*row) for row in zip(words, means.tolist(), why, strict=True))

    def _future(self, now: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sample a future: what was submitted, from a random job on and around."""
        past = np.array(self.past)
        n = len(past)
        at = (int(self.rng.integers(n)) + np.arange(self.horizon)) % n
        gaps = np.diff(past[:, 0], prepend=past[0, 0])
        gaps[0] = gaps[1:].mean()
        return now + np.cumsum(gaps[at]), past[at, 1].astype(np.int64), past[at, 2]
