"""One problem made ready for the policy: its base, arrays to build schedules in, and one schedule after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.schedule.decode import Decoder, data_of, room_of
from gangplan.solvers.schedule.lists import base, base_of
from gangplan.solvers.schedule.prepare import Ints, Prepared
from gangplan.solvers.schedule.profile import Busy, idle

from ..gnn.encoding import Encoding, mean
from .build import Log, Net, build
from .features import FEATURES, WINDOW, Static, graph_of, slopes

_NO_NOISE = np.empty((0, 1))
_NOTHING = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What the policy saw and did, s steps.

    Attributes:
        x: features, float32 (s, c, f).
        cands: (place in the window, option or -1), int64 (s, c, 2).
        count: candidates of each step, int64 (s,).
        pick: which of them was taken, int64 (s,).
        window: the jobs that competed, int64 (s, w).
        score: of each candidate, noise and the base's advantage included, float32 (s, c).
    """

    x: Any
    cands: Ints
    count: Ints
    pick: Ints
    window: Ints
    score: Any

    def jobs(self) -> Ints:
        """Return the job of each candidate, int64 (s, c)."""
        return np.asarray(np.take_along_axis(self.window, self.cands[:, :, 0], axis=1))

    def taken(self) -> Ints:
        """Return (job, option or -1) of each step, int64 (s, 2)."""
        s = np.arange(len(self.pick))
        chosen = self.cands[s, self.pick]
        return np.stack([self.window[s, chosen[:, 0]], chosen[:, 1]], axis=1)


class Builder:
    """Builds schedules of one problem, beside what runs already, if anything does.

    Attributes:
        p: the problem.
        base: what a policy starts from.
        unit: what a mean job's mean duration costs: regrets are counted in it.
    """

    def __init__(self, p: Prepared, busy: Busy | None = None, stopped: Callable[[], bool] = lambda: False) -> None:
        self.p, self._busy = p, idle() if busy is None else busy
        decoder = Decoder(p, self._busy)
        self.base = base(p, stopped) if busy is None else base_of(decoder, stopped)
        shortest = p.least(p.seconds)
        second = mean(shortest[np.diff(p.first) > 0]) or 1.0
        slope = slopes(p)
        self._static = Static(second, slope, p.least(p.gpus * p.seconds), self.base.penalty)
        self.unit = float(slope.mean()) * second
        self.order = np.argsort(self.base.rank, kind="stable").astype(np.int64)
        self._data, self._room, self._made = data_of(p), room_of(p, len(self._busy.node)), decoder.made
        self.start, self.option = self._made.start, self._made.option
        self._used = 0
        self.most = WINDOW * (int(np.diff(p.first).max(initial=0)) + 1)
        self._no_log = self._log(0)

    def graph(self) -> Encoding:
        """Return what the network sees of the problem as a whole."""
        return graph_of(self.p, self.base)

    def build(self, net: Net, noise: FloatArray = _NO_NOISE, follow: Ints = _NOTHING) -> float:
        """Build a schedule and return its goal; inf if a job that must run has no time."""
        return self._build(net, noise, follow, self._no_log)

    def record(self, net: Net, noise: FloatArray = _NO_NOISE, follow: Ints = _NOTHING) -> tuple[float, Steps]:
        """Build a schedule, and return its goal and what was seen and done; what was told has one candidate."""
        log = self._log(self.p.n)
        cost = self._build(net, noise, follow, log)
        return cost, Steps(*(x[: self._steps] for x in log))

    def values(self, net: Net, steps: Steps, t: int) -> FloatArray:
        """Return the goals if step t takes each of its candidates, and `net` goes on from there, float64 (c,)."""
        before, cands = steps.taken()[:t], steps.cands[t, : steps.count[t]]
        then = np.stack([steps.window[t, cands[:, 0]], cands[:, 1]], axis=1)
        return np.array([self.build(net, follow=np.concatenate([before, [one]])) for one in then])

    def plan(self) -> Any:
        """Return the plan of the schedule built last."""
        return self.p.plan(self.option, self.start, self._made.rows[:, : self._used])

    def _build(self, net: Net, noise: FloatArray, follow: Ints, log: Any) -> float:
        cost, self._used, self._steps = build(
            self.order, follow, noise, net, self._data, self._static, self._room, self._busy, self._made, log
        )
        return self.p.constant + float(cost)

    def _log(self, s: int) -> Log:
        c = self.most
        return Log(
            x=np.zeros((s, c, len(FEATURES)), np.float32),
            cands=np.zeros((s, c, 2), np.int64),
            count=np.zeros(s, np.int64),
            pick=np.zeros(s, np.int64),
            window=np.zeros((s, WINDOW), np.int64),
            score=np.zeros((s, c), np.float32),
        )


def no_net() -> Net:
    """Return the network that says nothing: the base's choices stand."""
    none = np.zeros((0, 0), dtype=np.float32)
    return Net(none, none, none, none, none.ravel(), none.ravel())


def gumbel(steps: int, candidates: int, scale: float, rng: np.random.Generator) -> FloatArray:
    """Return noise that turns the best score into a draw at that temperature, float64 (steps, candidates)."""
    return np.asarray(scale * rng.gumbel(size=(steps, candidates)))


def plans(builder: Builder, net: Net) -> Iterator[float]:
    """Build schedules and yield their goals, the greedy one first; `builder` has each as it is yielded.

    Where the base is better than the greedy one it comes first, so that no answer is worse than the base.

    Limited discrepancy search (Harvey and Ginsberg, IJCAI 1995): each schedule follows the greedy one up to some step,
    takes another candidate there, and is greedy from then on. Those go first whose scores are nearest to that of the
    choice. When one is better than all before, the search goes on around it.
    """
    best, steps = builder.record(net)
    if builder.base.cost < best:
        builder.build(no_net())
        yield builder.base.cost
        builder.build(net)
    yield best
    best = min(best, builder.base.cost)
    tried = {_key(steps.taken())}
    fixed = steps.taken()[:0]
    while True:
        for other in _others(steps, len(fixed)):
            if (key := _key(other)) in tried:
                continue
            tried.add(key)
            cost = builder.build(net, follow=other)
            yield cost
            if cost < best:
                best, fixed = cost, other
                break
        else:
            return
        _, steps = builder.record(net, follow=fixed)
        tried.add(_key(steps.taken()))


def _others(steps: Steps, told: int) -> Iterator[Ints]:
    """Yield beginnings of schedules that leave that of `steps` at their last step, the likeliest first."""
    s = np.arange(len(steps.count))
    real = np.arange(steps.score.shape[1])[None] < steps.count[:, None]
    behind = np.where(real, steps.score[s, steps.pick][:, None] - steps.score, np.inf)
    behind[s, steps.pick] = np.inf
    behind[:told] = np.inf
    taken, jobs = steps.taken(), steps.jobs()
    for place in np.argsort(behind, axis=None, kind="stable").tolist():
        t, c = divmod(place, behind.shape[1])
        if not behind[t, c] < np.inf:
            return
        yield np.concatenate([taken[:t], [[jobs[t, c], steps.cands[t, c, 1]]]])


def _key(taken: Ints) -> bytes:
    return taken.tobytes()
