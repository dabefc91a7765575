"""The tier that looks ahead: how much room to keep for short jobs, by playing what was submitted through again."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from .decision import Candidate
from .kept import Rule

LEAST = 300
"""Jobs that must have been seen before it looks ahead."""
GROWTH = 1.1
"""A round begins whenever so many times as many jobs were seen as at the round before."""
_MARGIN = 0.04
"""By how much another amount must be better than the present one, as a share, to take its place."""


def replay(jobs: Any, nodes: int, size: int, caps: Sequence[int]) -> np.ndarray:
    """Play jobs through on an empty cluster to the last end; return the seconds that each was there, (n,).

    Args:
        jobs: submission, GPUs, seconds, place in the order, class: arrays of n, submissions ascending.
        nodes, size: equal nodes with so many GPUs; the order, reservations and consolidation are the heuristic's.
        caps: GPUs that jobs of each class and above may hold.
    """
    from gangplan.simulator.trace.loop import run_easy

    submit, need, lasts, key, kind = jobs
    play: Any = run_easy
    first = np.arange(len(submit))
    start, _ = play(first, submit, need, lasts, key, nodes, size, True, kind, np.array(caps, dtype=np.int64))
    return np.asarray(start + lasts - submit)


class Lookahead:
    """Rounds of replays of the last jobs seen, one with each amount: what would have been best is taken from now on.

    A step is one replay, so that a decision can make as many as it has time for; a round goes on in the next one.

    Args:
        shares: two amounts or more, see `Rule.caps`; the first is what is used before anything is known.
        history: jobs that are replayed at most.
    """

    def __init__(self, shares: Sequence[float], history: int) -> None:
        self.shares = tuple(shares)
        self.best, self.rounds, self.seen, self.due = 0, 0, 0, LEAST
        self.past: deque[list[float]] = deque(maxlen=history)
        """Submission, GPUs, seconds and serial number of each job."""
        self.window = history
        """Jobs that are replayed: fewer where the deadline leaves no time for more."""
        self.took = 0.0
        """Seconds that the longest step of the last round took."""
        self.told: list[list[float]] = []
        """Of each amount in the last whole round: the mean time in system of all jobs, their first and last half."""
        self.found: list[list[float]] = []
        self._game: tuple[Any, ...] = ()
        one = np.ones(1)
        replay((one, one.astype(np.int64), one, one, one.astype(np.int64)), 1, 1, [1, 1])  # compiled before a deadline

    @property
    def share(self) -> float:
        """The amount to be used now."""
        return self.shares[self.best]

    def saw(self, serial: int, submit: float, gpus: int, seconds: float) -> None:
        """Remember a job that was submitted."""
        self.past.append([submit, gpus, seconds, serial])
        self.seen += 1

    def ended(self, serial: int, gpus: int, seconds: float) -> None:
        """Remember how long a job ran on how many GPUs."""
        at = bisect_left(self.past, serial, key=lambda job: int(job[3]))
        if at < len(self.past) and self.past[at][3] == serial:
            self.past[at][1:3] = gpus, seconds

    @property
    def ready(self) -> bool:
        """Whether a round has begun, or is to."""
        return bool(self._game) or self.seen >= self.due

    def shorten(self) -> None:
        """Replay half as many jobs from now on, in a round that begins anew."""
        self.window, self.took = max(LEAST, self.window // 2), self.took / 2
        self._game, self.found = (), []

    def step(self, rule: Rule, gpus: int, size: int, order: float) -> bool:
        """Replay with the next amount; return whether that ended a round and changed the amount.

        Args:
            rule: the classes.
            gpus: of the cluster.
            size: GPUs of a node.
            order: the exponent of GPUs in the keys.
        """
        began = time.perf_counter()
        if not self._game:
            self._begin(rule, max(1, gpus // size), size, order)
        jobs, nodes, wide = self._game
        there = replay(jobs, nodes, wide, rule.caps(self.shares[len(self.found)], gpus))
        half = len(there) // 2
        self.found.append([float(part.mean()) for part in (there, there[:half], there[half:])])
        self.took = max(self.took, time.perf_counter() - began)
        return len(self.found) == len(self.shares) and self._choose()

    def _begin(self, rule: Rule, nodes: int, size: int, order: float) -> None:
        """Begin a round with the jobs seen so far."""
        past = np.array(list(self.past)[-self.window :], dtype=float)
        submit, lasts = past[:, 0] - past[0, 0], past[:, 2].copy()
        need = np.minimum(past[:, 1].astype(np.int64), nodes * size)
        kind = np.searchsorted(np.array(rule.lengths), lasts, "right").astype(np.int64)
        self._game = (submit, need, lasts, lasts * need.astype(float) ** order, kind), nodes, size
        self.due = max(self.seen + 1, round(GROWTH * self.seen))
        self.took = 0.0

    def _choose(self) -> bool:
        """End a round: another amount must be clearly better over all jobs, and better in each half."""
        self.told, self.found, self._game = self.found, [], ()
        self.rounds += 1
        now = self.told[self.best]
        rivals = [i for i in range(len(self.shares)) if self._beats(self.told[i], now)]
        self.best = min(rivals, key=lambda i: self.told[i][0], default=self.best)
        return bool(rivals)

    def _beats(self, one: Sequence[float], now: Sequence[float]) -> bool:
        return one[0] < (1 - _MARGIN) * now[0] and one[1] < now[1] and one[2] < now[2]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the amounts with the mean time that jobs were there in the last whole round, seconds."""
        rows, best = [], self.told[self.best][0] if self.told else 0.0
        for i, (share, found) in enumerate(zip(self.shares, self.told, strict=False)):
            why = f"better by less than {_MARGIN:.0%}, or not in both halves of the jobs"
            if found[0] >= best:
                why = f"{found[0] / best - 1:+.1%} when the last jobs were replayed" if best else "no better"
            words = f"jobs of the longest class hold at most {share:.0%} of the GPUs"
            rows.append(Candidate(words, found[0], "" if i == self.best else why))
        return tuple(rows)
