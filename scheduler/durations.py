"""How long jobs take, learned online from those that finished: a pool of histograms, one a group of like jobs.

A job belongs to groups from all jobs down to its user's jobs with its title and size. A group has a histogram of the
logarithms of seconds, one of limits a histogram of the logarithms of limit over seconds. What is predicted is their
weighted mean, bounded by the job's limit. Weights say how often a group of such a kind, with so many jobs, was right
before (exponentiated gradient on the logarithm of the pool; Kivinen and Warmuth, Information and Computation 1997).
The hot loop is `_pool`, a few operations on arrays of groups x bins.

What is predicted is `Work`: a sample of `POINTS` amounts of GPU seconds, ascending, each as probable as the others: the
means of so many slices of equal probability, so that the mean is that of the whole. Beyond the last a job is taken to
need twice as much, and so on. Of a job of an age that says what is left, and its place in the order (Gittins).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.placement import GangJob
from gangplan.instances.typed import STATE

if TYPE_CHECKING:
    from .queueing.job_lines import JobLines
    from .queueing.request import Terms

POINTS = 24
"""Amounts of a sample: a snapshot has as many for each job, and a running job is looked at anew so often."""

Work = tuple[float, ...]
"""GPU seconds, ascending, each as probable as the others; none of a job whose seconds are believed."""


def quantile(work: Sequence[float], share: float) -> float:
    """Return the GPU seconds within which a job ends with so much probability, interpolated."""
    middle = (np.arange(len(work)) + 0.5) / len(work)
    return float(np.interp(share, middle, work))


def passed(work: Work, age: float) -> tuple[float, FloatArray]:
    """Return the last amount that a job has passed at an age, and the amounts that it may still need in all."""
    at = bisect_right(work, age)
    if at < len(work):
        return work[at - 1] if at else 0.0, np.array(work[at:])
    last = max(work[-1], 1.0)
    while 2 * last <= age:
        last *= 2
    return last, np.array([2 * last])


def expected(work: Work, age: float) -> float:
    """Return the GPU seconds that a job of an age is expected to need in all."""
    return float(passed(work, age)[1].mean())


def index(work: Work, age: float) -> float:
    """Return the Gittins index of a job of an age in GPU seconds, the least goes first.

    It is the least, over amounts d, of the work that the job is expected to take before it ends or has had d, over the
    probability that it ends by then (Gittins, Journal of the Royal Statistical Society B 1979; Scully, Harchol-Balter
    and Scheller-Wolf, SIGMETRICS 2018). If the amount is known it is what is left. The age is that of the last amount
    passed, so that a job does not seem to be about to end just before the next one.
    """
    base, rest = passed(work, age)
    more, n = rest - base, len(rest)
    ended = np.arange(1, n + 1)
    return float(((np.cumsum(more) + (n - ended) * more) / ended).min())


USUAL = 3600.0
"""Seconds that a job is expected to run before any has finished, the median."""
BINS, WIDTH = 72, 0.25
"""Bins of a histogram, and the logarithm of the ratio of a bin's ends: from a second to two years."""
GROUPS = 1024
"""Groups that are remembered, the last to have learned."""
FORGET = 0.99
"""Weight of a job in its group after the next one: about 100 count."""
RATE = 0.05
"""Step of the weights after a job: about 20 jobs of a kind of group move them. Three times as much loses .5% less where
it was tuned, and orders no better on second halves."""
FLOOR = 0.01
"""Of each group's histogram, what is that of all jobs: nothing is impossible."""
_STEPS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Jobs of a group from which on it has another weight."""
LEVELS, SLOW = 16, 0.998
"""Levels at which the pool is held against what came, and the weight there of a job after the next one."""
_EVEN = 5.0
"""Jobs at each level that are taken to have come as the pool said before any did."""
_KERNEL = np.array([0.25, 0.5, 0.25])
"""How a job counts in its bin and the two beside."""
_KINDS: dict[str, tuple[str, ...]] = {
    "all": (), "size": ("size",), "model": ("model", "size"), "queue": ("queue", "size"), "user": ("user",),
    "user size": ("user", "size"), "user title": ("user", "title"), "user title size": ("user", "title", "size"),
    "title": ("title",), "work": (), "work model": ("model",), "work user": ("user",),
    "limit": (), "limit user": ("user",), "limit title": ("user", "title"),
}  # fmt: skip
"""What jobs of a group have in common, by its kind."""
_WORKS, _LIMITS = list(_KINDS).index("work"), list(_KINDS).index("limit")
"""Kinds of groups from here on are of GPU seconds, and of limits over seconds."""
_MIDDLE = np.exp((np.arange(BINS) + 0.5) * WIDTH) * (np.sinh(WIDTH / 2) / (WIDTH / 2))
"""Mean seconds of a bin in which logarithms are spread evenly."""

Key = tuple[str | int, ...]


class Pooled(NamedTuple):
    """What groups say of a job: their kinds, buckets and histograms (groups, bins), weights, and the pool (bins,)."""

    kind: np.ndarray
    bucket: np.ndarray
    each: FloatArray
    weight: FloatArray
    pool: FloatArray


@lru_cache(4096)
def pattern(title: str) -> str:
    """Return a title without numbers, and without what joins a number at its end."""
    return re.sub(r"[\W_]*#$", "", re.sub(r"\d+", "#", title.lower()))


class Durations:
    """The work of jobs, learned from those that finished."""

    def __init__(self) -> None:
        self._row: dict[Key, int] = {}
        self._count = np.zeros((GROUPS, BINS))
        self._total = np.zeros(GROUPS)
        start = np.array([1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 2], dtype=float)[:, None]
        self._weight = start * np.array([0.2, 0.4, 0.7, 1.0, 1.2, 1.4, 1.5])[None]
        spread = np.exp(-0.5 * ((np.arange(BINS) + 0.5) * WIDTH - log(USUAL)) ** 2)
        self._prior = spread / spread.sum()
        self._trust = 1.0  # in the prior, until jobs finish
        self.learned, self.turn, self.stale = False, 0, 0  # see `predict_again`
        self._came = np.full((2, LEVELS), _EVEN)  # at which level of the pool jobs ended, without and with limits

    @staticmethod
    def _keys(job: GangJob, terms: Terms, scale: float) -> list[tuple[int, Key]]:
        """Return the groups of a job, with their kinds: of those that say something of it."""
        said = {
            "size": job.workers[-1] * (job.worker.grants or 1), "model": job.model,
            "queue": terms.queue, "user": terms.user, "title": pattern(terms.title),
        }  # fmt: skip
        apart = () if job.worker.gpu else ("without GPUs",)  # these are like one another, and like no gangs
        keys = ((kind, (kind, *(said[x] for x in names), *apart)) for kind, names in enumerate(_KINDS.values()))
        return [(kind, key) for kind, key in keys if "" not in key and (scale or kind < _LIMITS)]

    def _pool(self, keys: list[tuple[int, Key]], gpus: int, scale: float) -> Pooled:
        """Return what the groups say that have had a job, hot."""
        known = [(kind, row) for kind, key in keys if (row := self._row.get(key)) is not None]
        if not known:
            none = np.zeros(0, dtype=np.int64)
            return Pooled(none, none, np.zeros((0, BINS)), np.zeros(0), self._prior)
        kind, row = np.array(known).T
        total = self._total[row]
        each = self._count[row] / total[:, None]
        works, limits = np.searchsorted(kind, (_WORKS, _LIMITS)).tolist()
        if gpus > 1 and works < limits:
            each[works:limits] = _moved(each[works:limits], -log(gpus) / WIDTH)
        if limits < len(kind):
            each[limits:] = _moved(each[limits:, ::-1], log(max(1.0, scale)) / WIDTH - BINS)
        each *= 1 - FLOOR
        each += FLOOR * each[0]
        bucket = np.searchsorted(_STEPS, total, "right")
        weight = self._weight[kind, bucket]
        weight = weight / weight.sum()
        pool = weight @ each
        if self._trust > 1e-3:
            pool = (1 - self._trust) * pool + self._trust * self._prior
        return Pooled(kind, bucket, each, weight, pool)

    def predict(self, job: GangJob, terms: Terms, guess: float | None = None) -> Work:
        """Return the work of a job, if its `seconds` are no more than a `guess`, as `guess` with the most workers."""
        gpus = job.workers[-1] * (job.worker.grants or 1)
        scale = terms.limit or guess or 0.0
        pool = self._pool(self._keys(job, terms, scale), gpus, scale).pool
        # pools of calibrated forecasts are too wide (Gneiting and Ranjan, Electronic Journal of Statistics 2013)
        came = np.concatenate([[0.0], np.cumsum(self._came[int(scale > 0)])])
        below = np.concatenate([[0.0], np.cumsum(pool)])
        pool = np.diff(np.interp(below / below[-1] * LEVELS, np.arange(LEVELS + 1), came / came[-1]))
        if terms.limit is not None:
            last = max(0, min(BINS - 1, int(log(max(1.0, terms.limit)) / WIDTH)))
            pool[last + 1 :] = 0.0
            if not pool.any():
                pool[last] = 1.0
        below = np.concatenate([[0.0], np.cumsum(pool)])
        work = np.concatenate([[0.0], np.cumsum(pool * _MIDDLE)])
        slices = np.diff(np.interp(np.linspace(0.0, below[-1], POINTS + 1), below, work)) * (POINTS / below[-1])
        if terms.limit is not None:
            slices = np.minimum(slices, terms.limit)
        return tuple((np.maximum.accumulate(slices) * gpus).tolist())

    def learn(self, job: GangJob, terms: Terms, work: float, guess: float | None = None) -> None:
        """Learn from a job that finished after so many GPU seconds."""
        gpus = job.workers[-1] * (job.worker.grants or 1)
        seconds = max(1.0, work / gpus)
        scale = terms.limit or guess or 0.0
        keys = self._keys(job, terms, scale)
        at = _bin(seconds)
        said = self._pool(keys, gpus, scale)
        if len(said.kind):
            right = said.each[:, at - 1 : at + 2] @ _KERNEL
            step = np.clip(RATE * (right / max(1e-12, said.weight @ right) - 1), -1.0, 1.0)
            weight = self._weight[said.kind, said.bucket] * np.exp(step)
            self._weight[said.kind, said.bucket] = np.clip(weight, 1e-3, 1e3)
        below = (float(said.pool[:at].sum()) + 0.5 * float(said.pool[at])) / float(said.pool.sum())
        came = self._came[int(scale > 0)]
        came[:] = SLOW * came + (1 - SLOW) * _EVEN
        came[min(LEVELS - 1, int(below * LEVELS))] += 1
        self._trust *= 0.25
        self.learned = True
        kind, rows = np.array([(kind, self._open(key)) for kind, key in keys]).T
        self._count[rows] *= FORGET
        self._total[rows] = FORGET * self._total[rows] + 1
        parts = np.split(rows, np.searchsorted(kind, (_WORKS, _LIMITS)))
        for part, value in zip(parts, (seconds, seconds * gpus, scale / seconds), strict=True):
            at = _bin(max(1.0, value))
            self._count[part, at - 1 : at + 2] += _KERNEL

    def _open(self, key: Key) -> int:
        """Return the row of a group that learns, that of the one that did so longest ago if it is new."""
        row = self._row.pop(key, -1)
        if row < 0:
            row = len(self._row) if len(self._row) < GROUPS else self._row.pop(next(iter(self._row)))
            self._count[row], self._total[row] = 0.0, 0.0
        self._row[key] = row
        return row

    def save(self) -> dict[str, Any]:
        """Return what was learned, for JSON."""
        groups = []
        for key, row in self._row.items():
            at = np.flatnonzero(self._count[row])
            groups.append([list(key), float(self._total[row]), at.tolist(), self._count[row, at].tolist()])
        weights, came = self._weight.tolist(), self._came.tolist()
        again = [int(self.learned), self.turn, self.stale]
        return {"trust": self._trust, "came": came, "again": again, "weights": weights, "groups": groups}

    def load(self, saved: Any) -> None:
        """Take over what `save` returned, or the works by model and GPUs that earlier versions had.

        Raises:
            InstanceError: naming what of it is wrong.
        """
        fresh = Durations()
        if isinstance(saved, list):
            fresh._replay(saved)
        else:
            fresh._read(saved)
        self.__dict__.update(fresh.__dict__)

    def _replay(self, saved: list[Any]) -> None:
        from .queueing.request import USUAL_TERMS

        for model, gpus, works in STATE.read(tuple[tuple[str, int, tuple[float, ...]], ...], saved, "guess"):
            for work in works if model else ():
                self.learn(GangJob("earlier", model, (max(1, gpus),)), USUAL_TERMS, work)

    def _read(self, saved: Any) -> None:
        self._trust = float(STATE.read(float, saved["trust"], "durations.trust"))
        again = STATE.read(tuple[int, int, int], saved.get("again", [0, 0, 0]), "durations.again")
        self.learned, (_, self.turn, self.stale) = bool(again[0]), again
        for name, kept in (("weights", self._weight), ("came", self._came)):
            for i, row in enumerate(saved[name]):
                for j, weight in enumerate(row):
                    require_number(weight, f"durations.{name}[{i}][{j}]", positive=True)
            kept[:] = np.array(saved[name], dtype=float)
        for i, (key, total, at, counts) in enumerate(saved["groups"][-GROUPS:]):
            require_number(total, f"durations.groups[{i}]", positive=True)
            for count in counts:
                require_number(count, f"durations.groups[{i}]")
            if not all(type(part) in (str, int) for part in key) or not all(
                type(a) is int and 0 <= a < BINS for a in at
            ):
                raise InstanceError(f"durations.groups[{i}]", "is not a group and its bins")
            row = self._open(tuple(key))
            self._total[row] = total
            self._count[row, at] = counts


def _bin(value: float) -> int:
    """Return the bin of seconds, or of a ratio, with one on each side of it."""
    return max(1, min(BINS - 2, int(log(value) / WIDTH)))


def _moved(each: FloatArray, by: float) -> FloatArray:
    """Return histograms moved by so many bins to the right; what falls off an end is in its last bin."""
    whole = int(np.floor(by))
    moved = np.zeros_like(each)
    for step, share in ((whole, 1 - (by - whole)), (whole + 1, by - whole)):
        low, high = min(BINS, max(0, step)), max(0, min(BINS, BINS + step))
        if low < high:
            moved[:, low:high] += share * each[:, low - step : high - step]
    moved[:, 0 if by < 0 else -1] += np.maximum(0.0, each.sum(axis=1) - moved.sum(axis=1))
    return moved


MOST = 16
"""Jobs that are predicted anew in a decision, in turn: about a millisecond."""


def predict_again(state: JobLines) -> None:
    """Predict the next waiting jobs anew, unless all have been since the last job finished.

    Else jobs that are alike were in an order of chance: each by what was known when it came, so that who came later
    could pass who waits, again and again. Jobs that may be stopped keep what they came with: a change of their order
    costs stops.
    """
    estimates = state.estimates
    if estimates.learned:
        estimates.learned, estimates.stale = False, len(state.waiting)
    estimates.stale = min(estimates.stale, len(state.waiting))
    if not estimates.stale:
        return
    count, known = min(MOST, estimates.stale), dict[object, Work]()  # jobs that are alike are predicted once
    turn, waiting = estimates.turn, state.waiting.values()
    behind = (request for request in waiting if request.serial > turn)
    for request in list(islice(chain(behind, waiting), count)):
        estimates.turn = request.serial
        if not request.work or request.price is not None:
            continue
        job, terms = request.job, request.terms
        like = job.model, job.workers, job.worker, terms.user, terms.title, terms.queue, terms.limit, request.guess
        if like not in known:
            known[like] = estimates.predict(job, terms, request.guess)
        if known[like] != request.work:
            state.estimate(replace(request, work=known[like]).aged(request.done))
    estimates.stale -= count
