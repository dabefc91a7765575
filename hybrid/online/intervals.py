"""When a job starts, probably: an interval learned from this scheduler's own past, and kept calibrated.

A job that still waits after the decision that follows its submission is one *case*: what is known then are a few
*features* (`forecast`), what is learned is the logarithm of the seconds until it starts. Ridge regression predicts
it; quantiles are those of the residuals of the nearest cases (the regression by quantiles of Meinshausen, JMLR 2006,
with neighbours in place of leaves). Which quantiles are taken is adapted with each case that turns out (adaptive
conformal inference; Gibbs and Candes, NeurIPS 2021), for each end of the interval by itself, so that in the long run
5% start before and 5% after it, whatever the jobs do.

Cases that are not over count too. One that waits longer than predicted is learned with what it has waited until now,
and one that waits beyond its interval is a miss from that moment on, and not only once it starts. Otherwise, while a
queue grows, only the short waits would be heard of.

Nothing here changes a decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from math import exp, expm1, inf, log1p
from typing import Any

import numpy as np

from gangplan.instances import InstanceError

from .forecast import FEATURES, Arrivals, features
from .state import ClusterState

CASES = 1024
"""Cases that are over and remembered."""
OPEN = 256
"""Cases that are not over and looked at, the latest."""
NEAREST = 32
"""Cases whose residuals are looked at."""
ENOUGH = 20
"""Cases that are over before an interval is told."""
TAIL = 0.05
"""Share of jobs that start before, and after, an interval of 90%."""
STEP = 0.01
"""How much a miss moves the quantile that is taken."""
EVERY = 16
"""Cases that turn out between two regressions."""
RIDGE = 10.0
"""Penalty of a coefficient's square, in cases."""
FLOOR = 0.3
"""Added to the standard deviation of a feature, all of which are logarithms."""
BEYOND, STRETCH = 1.0, 3.0
"""How far quantiles may be adapted beyond the outermost residual, and the logarithm of its stretch there, by one."""
LONGEST = 2.3
"""No interval ends later than e to this times the longest wait of the cases."""
AGAIN = 600.0
"""Seconds after which a waiting job is asked of again, then after twice as many, and so on."""
_WEIGHT = np.array([0.3, 0.6, 0.6, 0.3, 0.3, 0.3, 0.15, 0.15, 0.15, 0.15, 0.06])
"""Of squared differences of features, beside that of the predictions, which is 1/2."""
_MINE = 0.5


@dataclass(slots=True)
class Levels:
    """Which quantiles are taken: adapted, see `STEP`; 0 and 1 are the outermost residuals."""

    low: float = 0.0
    high: float = 1.0

    def missed_low(self, missed: bool) -> None:
        """Note whether a job started before its interval."""
        self.low = max(self.low + STEP * (TAIL - missed), -BEYOND)

    def missed_high(self, missed: bool) -> None:
        """Note whether a job started after its interval, or waits beyond it."""
        self.high = min(self.high + STEP * (missed - TAIL), 1 + BEYOND)

    def of(self, ascending: np.ndarray) -> tuple[float, float]:
        """Return both ends of residuals, about their median."""
        low, middle, high = (_quantile(ascending, at) for at in (self.low, 0.5, self.high))
        low = middle - (middle - low) * exp(STRETCH * max(-self.low, 0.0))
        return low, middle + (high - middle) * exp(STRETCH * max(self.high - 1, 0.0))


@dataclass(slots=True)
class Question:
    """An interval that was told of a waiting job: not before `low`, not after `high`, seconds of the user's clock."""

    low: float
    high: float
    again: bool
    passed: bool = False


@dataclass(slots=True)
class Case:
    """A job that waits: since when, its features then, and the intervals that were told of it."""

    since: float
    x: np.ndarray
    questions: list[Question]


class StartIntervals:
    """Predict when jobs start, and learn when they do.

    Attributes:
        count: cases that are over.
    """

    def __init__(self) -> None:
        self.count = 0
        self.arrivals = Arrivals()
        self.levels = Levels(), Levels()  # of jobs that have just come, and of those asked of again
        self._fresh: dict[str, None] = {}
        self._open: dict[str, Case] = {}
        self._later: list[tuple[float, str, int]] = []  # when a question's interval ends, or to ask again: -1
        self._x = np.zeros((CASES + OPEN, FEATURES))
        self._y = np.zeros(CASES + OPEN)
        self._since = np.full(OPEN, np.nan)
        self._slots: list[str] = [""] * OPEN
        self._asked = 0
        self._mean, self._scale, self._slope = np.zeros(FEATURES), np.ones(FEATURES), np.zeros(FEATURES)
        self._level, self._stale = 0.0, EVERY
        self._z = np.zeros_like(self._x)

    def submitted(self, state: ClusterState, name: str) -> None:
        """Note a job that has come."""
        self._fresh[name] = None
        self.arrivals.note(state.waiting[name])

    def decided(self, state: ClusterState, started: Iterable[str]) -> None:
        """Learn from who started, and open a case for who has come and waits."""
        now = state.now
        for name in started:
            if (case := self._open.pop(name, None)) is not None:
                self._learn(name, case, now)
        for name in self._fresh:
            if name in state.waiting:
                self._ask(state, name)
        self._fresh.clear()
        while self._later and self._later[0][0] < now:
            _, name, number = heappop(self._later)
            if (case := self._open.get(name)) is None:
                continue
            if number >= 0:
                case.questions[number].passed = True
                self.levels[case.questions[number].again].missed_high(True)
            elif name in state.waiting:
                self._ask(state, name)

    def withdrawn(self, name: str) -> None:
        """Forget a job: whether it would have started in its interval is not known, unless it waited beyond it."""
        self._fresh.pop(name, None)
        if self._open.pop(name, None) is not None:
            self._shut(name)

    def predict(self, state: ClusterState, name: str) -> tuple[float, float] | None:
        """Return the interval in which a waiting job starts with 90%, seconds of the user's clock.

        `None` until enough jobs have started that had to wait.
        """
        case = self._open.get(name)
        again = case is not None and case.since < state.now
        return self._interval(features(state, name, self.arrivals), state.now, again)

    def _ask(self, state: ClusterState, name: str) -> None:
        """Predict when a job starts, to see later whether it was right."""
        now, case = state.now, self._open.get(name)
        x = features(state, name, self.arrivals)
        interval = self._interval(x, now, case is not None)
        if case is None:
            case = self._open[name] = Case(now, x, [])
            slot = self._asked % OPEN
            self._asked += 1
            self._slots[slot], self._since[slot] = name, now
            self._put(CASES + slot, x)
        if interval is not None:
            heappush(self._later, (interval[1], name, len(case.questions)))
            case.questions.append(Question(*interval, again=now > case.since))
        heappush(self._later, (now + max(AGAIN, now - case.since), name, -1))

    def _learn(self, name: str, case: Case, now: float) -> None:
        """Learn when a job started."""
        for question in case.questions:
            levels = self.levels[question.again]
            levels.missed_low(now < question.low)
            if not question.passed:
                levels.missed_high(now > question.high)
        self._shut(name)
        at = self.count % CASES
        self._put(at, case.x)
        self._y[at] = log1p(now - case.since)
        self.count += 1
        self._stale += 1

    def _shut(self, name: str) -> None:
        """Have a job be none of those that wait."""
        if name in self._slots:
            slot = self._slots.index(name)
            self._slots[slot], self._since[slot] = "", np.nan

    def _put(self, row: int, x: np.ndarray) -> None:
        self._x[row] = x
        self._z[row] = (x - self._mean) / self._scale

    def _interval(self, x: np.ndarray, now: float, again: bool) -> tuple[float, float] | None:
        """Return an interval by the features of a job."""
        if self.count < ENOUGH:
            return None
        y, known = self._y, min(self.count, CASES)
        use = np.zeros(len(y), dtype=bool)
        use[:known] = True
        np.log1p(now - self._since, out=y[CASES:])
        if self._stale >= EVERY:
            self._fit(use)
        predicted = self._z @ self._slope + self._level
        np.greater(y[CASES:], predicted[CASES:], out=use[CASES:])
        z = (x - self._mean) / self._scale
        mine = float(z @ self._slope) + self._level
        far = ((self._z - z) ** 2) @ _WEIGHT + _MINE * (predicted - mine) ** 2
        far[~use] = inf
        near = np.argpartition(far, k := min(NEAREST, max(ENOUGH // 2, known // 3)))[:k]
        low, high = self.levels[again].of(np.sort(y[near] - predicted[near]))
        longest = float(y[use].max()) + LONGEST
        ends = [now + expm1(min(max(mine + end, 0.0), longest)) for end in (low, high)]
        return ends[0], max(ends)

    def _fit(self, use: np.ndarray) -> None:
        """Fit the regression to the cases that are over, and those that wait longer than it said."""
        self._stale = 0
        if self.count > ENOUGH:
            use = use.copy()
            use[CASES:] = self._y[CASES:] > self._z[CASES:] @ self._slope + self._level
        x, y = self._x[use], self._y[use]
        self._mean, self._scale = x.mean(axis=0), x.std(axis=0) + FLOOR
        self._z = (self._x - self._mean) / self._scale
        z = self._z[use]
        self._level = float(y.mean())
        self._slope = np.linalg.solve(z.T @ z + RIDGE * np.eye(FEATURES), z.T @ (y - self._level))


def _quantile(ascending: np.ndarray, level: float) -> float:
    """Return a quantile of numbers in order, between two of them linear; the outermost for a level beyond."""
    at = min(max(level, 0.0), 1.0) * (len(ascending) - 1)
    low = int(at)
    high = min(low + 1, len(ascending) - 1)
    return float(ascending[low] + (at - low) * (ascending[high] - ascending[low]))
