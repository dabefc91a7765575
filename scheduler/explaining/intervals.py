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
from copy import copy
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import exp, expm1, inf, log1p
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number

from ..queueing.request import Request
from ..state import SchedulerState
from .forecast import FEATURES, features

_RECENT = 256
"""Number of submissions that tell the rate of work."""
CASES = 1024
"""Cases that are over and remembered."""
OPEN = 256
"""Cases that are not over and looked at, the latest."""
NEAREST = 64
"""Cases whose residuals are looked at."""
ENOUGH = 50
"""Cases that are over before an interval is told."""
TAIL = 0.05
"""Share of jobs that start before, and after, an interval of 90%."""
STEP = 0.02
"""How much a miss moves the quantile that is taken."""
EVERY = 16
"""Cases that turn out between two regressions."""
RIDGE = 10.0
"""Penalty of a coefficient's square, in cases."""
FLOOR = 0.3
"""Added to the standard deviation of a feature, all of which are logarithms."""
BEYOND, STRETCH = 2.0, 1.0
"""How far quantiles may be adapted beyond the outermost residual, and the logarithm of its stretch there, by one."""
LONGEST = 2.3
"""No interval ends later than e to this times the longest wait of the cases."""
SHARE, SAVED = 0.25, 64.0
"""Cases a decision in the long run, so that they take little of its time; how many may be saved up."""
_WEIGHT = np.sqrt([0.3, 0.6, 0.6, 0.3, 0.3, 0.3, 0.15, 0.15, 0.15, 0.15, 0.06])
"""Of differences of features, in standard deviations."""
_MINE = 0.5**0.5
"""Of the difference of what the regression says."""


@dataclass(slots=True)
class QuantileLevels:
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
class Wait:
    """A job that waits.

    Attributes:
        slot: its row among `OPEN`, unless a later case has it.
        since: from when on it waits, seconds of the user's clock.
        x: its features then.
        low, high: the interval that was told then, `None` if none was.
        passed: whether it waits beyond it.
    """

    slot: int
    since: float
    x: np.ndarray
    low: float | None = None
    high: float | None = None
    passed: bool = False


class Arrivals:
    """Keep the last submissions: when, seconds and GPUs."""

    def __init__(self) -> None:
        self.count = 0
        self.rows = np.zeros((3, _RECENT))

    def note(self, request: Request) -> None:
        """Note a submission."""
        degree = request.job.workers[-1]
        self.rows[:, self.count % _RECENT] = request.submit, request.lasts(degree), request.gpus(degree)
        self.count += 1

    def rate(self, now: float, key: float, order: float) -> float:
        """Return the GPUs that jobs with a smaller key than this have come to ask for, in the mean over time."""
        when, seconds, gpus = self.rows[:, : min(self.count, _RECENT)]
        if self.count < 2 or now <= (first := when[self.count % _RECENT if self.count > _RECENT else 0]):
            return 0.0
        keys = seconds if not order else seconds * gpus**order
        return float((seconds * gpus) @ (keys < key) / (now - first))


class StartIntervals:
    """Predict when jobs start, and learn when they do.

    Attributes:
        count: cases that are over.
    """

    def __init__(self) -> None:
        self.count = 0
        self.arrivals = Arrivals()
        self.levels = QuantileLevels()
        self._fresh: dict[str, None] = {}
        self._open: dict[str, Wait] = {}
        self._ends: list[tuple[float, str]] = []  # of intervals
        self._x = np.zeros((CASES + OPEN, FEATURES))
        self._y = np.zeros(CASES + OPEN)
        self._since = np.full(OPEN, np.nan)
        self._slots: list[str] = [""] * OPEN
        self._asked, self._saved = 0, SAVED
        self._mean: np.ndarray = np.zeros(FEATURES)
        self._scale: np.ndarray = np.ones(FEATURES)
        self._slope: np.ndarray = np.zeros(FEATURES)
        self._level, self._longest, self._stale = 0.0, 0.0, EVERY
        self._arrange()

    def submitted(self, state: SchedulerState, name: str) -> None:
        """Note a job that has come."""
        self._fresh[name] = None
        self.arrivals.note(state.waiting[name])

    def decided(self, state: SchedulerState, started: Iterable[str]) -> None:
        """Learn from who started, and open a case for who has come and waits."""
        now = state.now
        for name in started:
            if (case := self._open.pop(name, None)) is not None:
                self._learn(name, case, now)
        self._saved = min(self._saved + SHARE, SAVED)
        for name in self._fresh:
            if name in state.waiting and self._saved >= 1:
                self._ask(state, name)
        self._fresh.clear()
        while self._ends and self._ends[0][0] < now:
            end, name = heappop(self._ends)
            if (case := self._open.get(name)) is not None and case.high == end:
                case.passed = True
                self.levels.missed_high(True)

    def withdrawn(self, name: str) -> None:
        """Forget a job: whether it would have started in its interval is not known, unless it waited beyond it."""
        self._fresh.pop(name, None)
        if (case := self._open.pop(name, None)) is not None:
            self._shut(name, case)

    def predict(self, state: SchedulerState, name: str) -> tuple[float, float] | None:
        """Return the interval in which a job that waits, and goes on to, starts with 90%, seconds of the user's clock.

        `None` until enough jobs have started that had to wait.
        """
        if self.count < ENOUGH:
            return None
        # a regression that is due is fitted to a copy, since a question changes nothing
        return copy(self)._interval(features(state, name, self.arrivals), state.now)

    def save(self) -> dict[str, Any]:
        """Return what was learned, for JSON."""
        known = min(self.count, CASES)
        return {
            "known": np.column_stack([self._x[:known], self._y[:known]]).tolist(),
            "model": [self._mean.tolist(), self._scale.tolist(), self._slope.tolist()],
            "numbers": [self.levels.low, self.levels.high, self._level, self._longest, self._saved],
            "counts": [self.count, self._stale, self._asked, self.arrivals.count],
            "arrivals": self.arrivals.rows[:, : self.arrivals.count].tolist(),
            "open": [
                [name, case.slot, case.since, case.x.tolist(), case.low, case.high, case.passed]
                for name, case in self._open.items()
            ],
            "fresh": list(self._fresh),
        }  # fmt: skip

    def load(self, saved: Mapping[str, Any], state: SchedulerState) -> None:
        """Take over what `save` returned of the same state; nothing was learned before.

        Raises:
            InstanceError: naming what of it is wrong.
        """
        for i, count in enumerate(saved["counts"]):
            require_number(count, f"counts[{i}]", whole=True)
        self.count, self._stale, self._asked, self.arrivals.count = saved["counts"]
        known, came = min(self.count, CASES), min(self.arrivals.count, self.arrivals.rows.shape[1])
        cases = _numbers(saved["known"], "known", known, FEATURES + 1)
        self._x[:known], self._y[:known] = cases[:, :-1], cases[:, -1]
        self._mean, self._scale, self._slope = _numbers(saved["model"], "model", 3, FEATURES)
        low, high, self._level, self._longest, self._saved = _numbers([saved["numbers"]], "numbers", 1, 5)[0].tolist()
        self.levels = QuantileLevels(low, high)
        self.arrivals.rows[:, :came] = _numbers(saved["arrivals"], "arrivals", 3, came)
        if (self._scale < FLOOR).any() or (self.arrivals.rows < 0).any() or (self._longest and self.count < ENOUGH):
            raise InstanceError("model", "has a scale, seconds or GPUs that cannot be")
        self._arrange()
        self._fresh = dict.fromkeys(saved["fresh"])
        for name, slot, since, x, low, high, passed in saved["open"]:
            for value, field in ((since, "since"), (low, "low"), (high, "high")):
                require_number(value, f"open.{field}", optional=field != "since")
            case = Wait(slot, min(since, state.now), _numbers([x], "open", 1, FEATURES)[0], low, high, passed is True)
            self._open[name] = case
            self._slots[slot], self._since[slot] = name, case.since
            self._put(CASES + slot, case.x)
            if case.high is not None and not case.passed:
                self._ends.append((case.high, name))
        if not {*self._fresh, *self._open} <= {*state.waiting}:
            raise InstanceError("open", "has a job that does not wait")
        heapify(self._ends)

    def _ask(self, state: SchedulerState, name: str) -> None:
        """Predict when a job starts that has come and waits, to see later whether it was right."""
        now, slot, x = state.now, self._asked % OPEN, features(state, name, self.arrivals)
        case = self._open[name] = Wait(slot, now, x)
        if (interval := self._interval(x, now)) is not None:
            case.low, case.high = interval
            heappush(self._ends, (case.high, name))
        self._saved -= 1
        self._asked += 1
        self._slots[slot], self._since[slot] = name, now
        self._put(CASES + slot, x)

    def _learn(self, name: str, case: Wait, now: float) -> None:
        """Learn when a job started."""
        if case.low is not None and case.high is not None:
            self.levels.missed_low(now < case.low)
            if not case.passed:
                self.levels.missed_high(now > case.high)
        self._shut(name, case)
        at = self.count % CASES
        self._put(at, case.x)
        self._y[at] = log1p(now - case.since)
        self.count += 1
        self._stale += 1

    def _shut(self, name: str, case: Wait) -> None:
        """Have a job be none of those that wait."""
        if self._slots[case.slot] == name:
            self._slots[case.slot], self._since[case.slot] = "", np.nan

    def _interval(self, x: np.ndarray, now: float) -> tuple[float, float] | None:
        """Return an interval by the features of a job."""
        if self.count < ENOUGH:
            return None
        y, known = self._y, min(self.count, CASES)
        if self._stale >= EVERY:
            self._fit(now)
        waited = y[CASES:] = np.log1p(now - self._since)
        place = self._place((x - self._mean) / self._scale)
        far = self._norm - self._places @ (place + place)  # squared distances, but for what is the same for all
        far[known:CASES] = inf
        far[CASES:][~(waited > self._said[CASES:])] = inf  # nan where nobody waits
        near = np.argpartition(far, k := min(NEAREST, max(ENOUGH // 2, known // 3)))[:k]
        low, high = self.levels.of(np.sort(y[near] - self._said[near]))
        mine, longest = float(place[-1]) / _MINE, self._longest + LONGEST
        ends = [max(now, round(now + expm1(min(max(mine + end, 0.0), longest)), 3)) for end in (low, high)]
        return ends[0], max(ends)

    def _place(self, z: np.ndarray) -> np.ndarray:
        """Return where cases are among others: weighted features, and what the regression says."""
        said = z @ self._slope + self._level
        return np.concatenate([z * _WEIGHT, said[..., None] * _MINE], axis=-1)

    def _put(self, row: int, x: np.ndarray) -> None:
        """Have a case at a row."""
        self._x[row] = x
        place = self._places[row] = self._place((x - self._mean) / self._scale)
        self._said[row], self._norm[row] = place[-1] / _MINE, place @ place

    def _fit(self, now: float) -> None:
        """Fit the regression to the cases that are over, and those that wait longer than it said."""
        known, y = min(self.count, CASES), self._y
        y[CASES:] = np.log1p(now - self._since)
        use = np.arange(len(y)) < known
        if self._longest:  # there was a regression before
            use[CASES:] = y[CASES:] > self._said[CASES:]
        self._stale = 0
        x = self._x[use]
        # rounded, since sums of products depend in their last digits on where arrays lie
        self._mean, self._scale = x.mean(axis=0).round(9), (x.std(axis=0) + FLOOR).round(9)
        z, self._level = (x - self._mean) / self._scale, round(float(y[use].mean()), 9)
        self._slope = np.linalg.solve(z.T @ z + RIDGE * np.eye(FEATURES), z.T @ (y[use] - self._level)).round(9)
        self._arrange()
        self._longest = float(y[use].max())

    def _arrange(self) -> None:
        """Have all cases where the regression puts them."""
        self._places = self._place((self._x - self._mean) / self._scale)
        self._said, self._norm = self._places[:, -1] / _MINE, (self._places**2).sum(axis=1)


def _numbers(values: Any, field: str, rows: int, columns: int) -> np.ndarray:
    """Return an array of numbers.

    Raises:
        InstanceError: if it has another shape, or numbers that are not finite.
    """
    array = np.array(values, dtype=float)
    array = array.reshape(-1, columns) if array.size else np.zeros((rows if not columns else 0, columns))
    if array.shape != (rows, columns) or not np.isfinite(array).all():
        raise InstanceError(field, f"is not {rows} rows of {columns} finite numbers")
    return array


def _quantile(ascending: np.ndarray, level: float) -> float:
    """Return a quantile of numbers in order, between two of them linear; the outermost for a level beyond."""
    at = min(max(level, 0.0), 1.0) * (len(ascending) - 1)
    low = int(at)
    high = min(low + 1, len(ascending) - 1)
    return float(ascending[low] + (at - low) * (ascending[high] - ascending[low]))
