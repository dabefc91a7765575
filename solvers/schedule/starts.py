"""Prices of GPU-seconds for a bound, then starts in their order under these prices: most proofs and good schedules.

The search keeps all promising beginnings of schedules side by side: exact while they are few, else a beam.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify import TOLERANCE

from ..run import OPTIMAL_GAP, Run
from .classic import BY_PRICES
from .decode import Decoder
from .grain import resolution, rounded_up, suits_starts
from .kernels import Data
from .prepare import CHEAPEST, EARLIEST, LEFT_OUT, Ints, PreparedJobs
from .price_kernels import at_least, dominated, extend
from .prices import FINER, LEVELS, OFTEN, BestPrices, Levels, ascend
from .run_kernels import cheapest

_WIDTHS = (10, 100, 1_000, 10_000, 100_000, 300_000)
"""Beginnings kept side by side, one search after the other."""
_LABEL_BYTES = 2e9
_FINER = 60
"""Maximum number of jobs for whose search prices are on a finer grid."""
_POINTS = 4096
"""Times at which what is to come is tabled."""
_LOOKS = 60
_STEPS, _LABELS, _JOBS = 10_000_000, 20_000, 50
"""Between two looks at the clock: jobs times options of beginnings that are extended; beginnings compared; jobs whose
costs are tabled."""


def prices(
    run: Run,
    p: PreparedJobs,
    levels: Levels = LEVELS,
    often: int = OFTEN,
    watch: Callable[[BestPrices], None] = lambda found: None,
) -> BestPrices | None:
    """Return prices whose bound is near that of the time-indexed LP; raise the bound and offer lists on the way.

    That is every `often` steps; `watch` is told of the prices then.
    """
    decoder = Decoder(p)

    def tell(found: BestPrices) -> None:
        run.raise_bound(rounded_up(p, found.bound - TOLERANCE * abs(found.bound)), "time-indexed LP")
        for order, wish in rounded(p, found):
            decoder.offer(run, BY_PRICES, order, wish)
        watch(found)

    found = ascend(run, p, _end(run, p), tell, levels, often)
    if found is not None and not run.stopped:
        tell(found)
    return found


def lp(run: Run, p: PreparedJobs) -> None:
    """Raise the bound to that of the time-indexed LP, and offer schedules in the order of its mean starts."""
    prices(run, p)


def starts(run: Run, p: PreparedJobs) -> None:
    """Price GPU-seconds, then search over starts, wider and wider; exact where GPUs are only counted."""
    with run.phase("prices"):
        found = prices(run, p, FINER if p.n <= _FINER else LEVELS)
    if found is None or run.stopped or not suits_starts(p):
        return
    if not p.slope.any():
        return  # every order costs the same: there is nothing to search by
    for width in _WIDTHS:
        if run.stopped or width * max(1, min(p.n, p.total)) * 48 > _LABEL_BYTES:
            return
        known = run.objective if run.objective is not None else _ceiling(p)
        search = StartSearch(run, p, found)
        missed = search.run(width, known, resolution(p) * (1 - 1e-6) or OPTIMAL_GAP / 2 * abs(known))
        if run.stopped:
            return
        best = min(known, search.value)
        if search.best is not None and search.value < known:
            option, start = search.best  # of counted GPUs: it is put on nodes or blocks in the order of its starts
            order = np.lexsort((np.arange(p.n), start, option < 0))
            Decoder(p).offer(run, "starts", order, option)
        elif missed == np.inf and run.plan is None:
            run.prove_infeasible("starts")
            return
        run.raise_bound(min(best, rounded_up(p, missed - TOLERANCE * abs(missed))), "starts")
        if missed == np.inf:
            return


def _ceiling(p: PreparedJobs) -> float:
    """Return more than any schedule without needless delay costs."""
    last = p.release.max() + p.seconds.sum() + 1.0
    return p.constant + 1.0 + float(p.slope.sum() * last + p.price[np.isfinite(p.price)].sum())


def _end(run: Run, p: PreparedJobs) -> float:
    if run.plan is not None:
        chosen = zip(run.problem.jobs, run.plan.degree.tolist(), run.plan.start.tolist(), strict=True)
        return float(max([p.release.max(), *(s + job.durations[d] for job, d, s in chosen if d >= 0)]))
    return p.horizon


def rounded(p: PreparedJobs, found: BestPrices) -> list[tuple[Ints, Ints]]:
    """Return lists in the order of the mean starts under prices: at the favourite degrees, or whoever ends first."""
    weight = np.add.reduceat(np.append(found.share, 0.0), p.first[:-1]) * (np.diff(p.first) > 0)
    wish = np.where(weight >= 0.5, p.first_least(-found.share, LEFT_OUT), LEFT_OUT)
    order = np.argsort(np.where(weight > 0, found.mean, np.inf), kind="stable")
    lists = [(order, np.where(np.isfinite(p.price) | (wish >= 0), wish, CHEAPEST))]
    return [*lists, (order, np.full(p.n, EARLIEST))] if np.isfinite(p.price).any() or suits_starts(p) else lists


class Labels(NamedTuple):
    """Beginnings of schedules, l of them.

    Given prices pi of GPU-seconds (see `prices`), the cost of a schedule is Lagrange's bound, plus for each job what
    its run costs more than its cheapest (reduced cost), plus what idle GPU-seconds are worth. All three terms only
    grow while jobs are started in the order of their starts: a partial schedule whose sum exceeds that of a known
    schedule is not completed.

    Attributes:
        started: a bit set of the jobs, uint64 (l, w).
        time, last: when and which the last started, (l,).
        true: the cost of those that run without prices, (l,).
        used, bound: reduced costs and idle GPUs so far, and with the least of what is to come, (l,).
        running, ends, held: how many run, (l,), until when, and on how many GPUs each, by ends, (l, wide).
    """

    started: Ints
    time: FloatArray
    last: Ints
    true: FloatArray
    used: FloatArray
    bound: FloatArray
    running: Ints
    ends: FloatArray
    held: NDArray[np.int32]


class Layer(NamedTuple):
    """Beginnings of one length.

    Attributes:
        labels: of each, l of them.
        parent: the beginning one job shorter, (l,).
        option: of the job that started last, (l,).
    """

    labels: Labels
    parent: Ints
    option: Ints

    def part(self, which: Ints | slice) -> Layer:
        """Return some of the beginnings."""
        columns: Iterator[Any] = (column[which] for column in self.labels)
        return Layer(Labels(*columns), self.parent[which], self.option[which])

    def joined(self, other: Layer) -> Layer:
        """Return these and others."""
        mine, theirs = tuple[Any, ...](self.labels), tuple[Any, ...](other.labels)
        columns = [np.concatenate(pair) for pair in zip(mine, theirs, strict=True)]
        parents, options = (np.concatenate(pair) for pair in zip(self[1:], other[1:], strict=True))
        return Layer(Labels(*columns), parents, options)


class StartSearch:
    """The search over starts for one set of prices; `best`: options (-1: left out) and starts; `value`: their cost."""

    def __init__(self, run: Run, p: PreparedJobs, prices: BestPrices) -> None:
        self._run, self._p, self._prices = run, p, prices
        self._data, self._grid = Data(p), prices.grid
        cost, at = np.zeros(len(p.gpus)), np.zeros(len(p.gpus))
        cheapest(self._grid, self._data, p.total, cost, at)
        self._least = np.minimum(p.least(cost, np.inf), p.price)
        self._fine = self._grid.step * len(self._grid.pi) / (_POINTS - 1) or 1.0
        points = np.asarray(self._grid.zero + self._fine * np.arange(_POINTS), np.float64)
        self._rest = np.zeros((p.n, _POINTS))
        given = self._grid, self._data, self._least, p.price - self._least, points, self._fine
        for j in range(0, p.n, _JOBS):
            if run.stopped:
                break
            at_least(*given, j, min(j + _JOBS, p.n), self._rest)
        self._wide = max(1, min(p.n, p.total))
        self.value = np.inf
        self.best: tuple[Ints, FloatArray] | None = None

    def run(self, width: int, known: float, step: float) -> float:
        """Keep `width` beginnings of each length; return what any schedule costs that was not looked at.

        It is inf if none that is cheaper than both `known` and `value`, by `step` or more, was left out.
        """
        bound, proved = self._prices.bound, np.inf
        budget = known - step - bound
        layer, taken = self._root(), list[tuple[Ints, Ints, FloatArray]]()
        for _ in range(self._p.n):
            layer, lost = self._next(layer.labels, width, budget)
            proved = min(proved, bound + lost)
            if self._run.stopped:
                return bound
            if not len(layer.parent):
                break
            taken.append((layer.parent, layer.option, layer.labels.time))
            self._close(layer.labels, taken)
            budget = min(budget, self.value - step - bound)
        return float(proved)

    def _room(self, count: int) -> Layer:
        labels = Labels(
            started=np.empty((count, (self._p.n + 63) // 64), dtype=np.uint64),
            time=np.empty(count),
            last=np.empty(count, dtype=np.int64),
            true=np.empty(count),
            used=np.empty(count),
            bound=np.empty(count),
            running=np.empty(count, dtype=np.int64),
            ends=np.empty((count, self._wide)),
            held=np.empty((count, self._wide), dtype=np.int32),
        )
        return Layer(labels, np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64))

    def _root(self) -> Layer:
        layer = self._room(1)
        labels = layer.labels
        for column in (labels.started, labels.true, labels.used, labels.running):
            column[:] = 0
        labels.time[:], labels.last[:] = self._grid.zero, -1
        labels.bound[:] = self._rest[:, 0].sum()
        return layer

    def _next(self, labels: Labels, width: int, budget: float) -> tuple[Layer, float]:
        p, lost = self._p, np.inf
        new = self._room(2 * width + 2 * len(p.gpus))
        kept: Layer | None = None
        begin, few = 0, max(1, _STEPS // (p.n * max(1, len(p.gpus))))
        while begin < len(labels.time) and not self._run.stopped:
            made, begin = extend(
                self._grid, self._data, p.total, self._least, self._rest, self._fine, budget,
                labels, *new, begin, min(begin + few, len(labels.time)),
            )  # fmt: skip
            part = new.part(slice(made))
            kept, left = self._best_of(part if kept is None else kept.joined(part), width)
            lost = min(lost, left)
        return (self._room(0) if kept is None else kept), lost

    def _best_of(self, layer: Layer, width: int) -> tuple[Layer, float]:
        """Return the beginnings that no other makes superfluous, at most `width`, and the least bound of the others."""
        labels, count = layer.labels, len(layer.parent)
        if not count:
            return layer, np.inf
        order = np.lexsort((labels.true, *labels.started.T))
        out, group = np.zeros(count, dtype=np.bool_), 0
        for begin in range(0, count, _LABELS):
            if self._run.stopped:
                break
            group = dominated(order, labels, _LOOKS, begin, min(begin + _LABELS, count), group, out.view(np.uint8))
        keep, lost = np.flatnonzero(~out), np.inf
        if len(keep) > width:
            keep = keep[np.argpartition(labels.bound[keep], width)]
            lost = float(labels.bound[keep[width]])
            keep = keep[:width]
        return layer.part(keep), lost

    def _close(self, labels: Labels, taken: list[tuple[Ints, Ints, FloatArray]]) -> None:
        """Look at every beginning as if what has not started were left out; `taken` are the steps up to these."""
        p = self._p
        price = np.zeros(len(labels.true))
        for j in range(p.n):
            inside = (labels.started[:, j // 64] >> np.uint64(j % 64)) & np.uint64(1)
            price += np.where(inside.astype(bool), 0.0, p.price[j])
        value = labels.true + price
        i = int(np.argmin(value))
        if value[i] + p.constant < self.value:
            self.value = float(value[i]) + p.constant
            option, start = np.full(p.n, -1), np.zeros(p.n)
            for parent, chosen, time in reversed(taken):
                o = int(chosen[i])
                option[p.owner[o]], start[p.owner[o]] = o, time[i]
                i = int(parent[i])
            self.best = option, start
