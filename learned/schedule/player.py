"""One problem made ready for the policy: its base schedule, and rooms to build others in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.schedule.decode import Schedule, data_of, rows_of
from gangplan.solvers.schedule.prepare import Ints, Prepared

from ..encode.encoding import Encoding
from .base import base_of
from .decode import Busy, Decoder, idle, room_for
from .features import FEATURES, WINDOW, Static
from .graph import graph_of, slopes
from .play import Log, Net, play

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


class Player:
    """Builds schedules of one problem, beside what runs already, see `gangplan.learned.schedule.decode.place`.

    Attributes:
        p: the problem.
        base: what a policy starts from.
        unit: what a mean job's mean duration costs: regrets are counted in it.
    """

    def __init__(self, p: Prepared, busy: Busy | None = None, stopped: Callable[[], bool] = lambda: False) -> None:
        self.p, self._busy = p, idle() if busy is None else busy
        self.base = base_of(Decoder(p, self._busy), stopped)
        some = np.diff(p.first) > 0
        least, shortest = np.zeros(p.n), np.zeros(p.n)
        if len(p.gpus):
            least[some] = np.minimum.reduceat(p.gpus * p.seconds, p.first[:-1][some])
            shortest[some] = np.minimum.reduceat(p.seconds, p.first[:-1][some])
        second = float(shortest[some].mean()) if some.any() else 1.0
        slope = slopes(p)
        self._static = Static(second or 1.0, slope, least, self.base.penalty)
        self.unit = float(slope.mean()) * (second or 1.0)
        self.order = np.argsort(self.base.rank, kind="stable").astype(np.int64)
        self._data, self._room = data_of(p), room_for(p, self._busy)
        self.start, self.option, self._rows = np.zeros(p.n), np.zeros(p.n, dtype=np.int64), rows_of(p)
        self._used = 0
        self.most = WINDOW * (int(np.diff(p.first).max(initial=0)) + 1)
        self._no_log = self._log(0)

    def graph(self) -> Encoding:
        """Return what the network sees of the problem as a whole."""
        return graph_of(self.p, self.base)

    def play(self, net: Net, noise: FloatArray = _NO_NOISE, follow: Ints = _NOTHING) -> float:
        """Build a schedule and return its goal; inf if a job that must run has no time."""
        return self._play(net, noise, follow, self._no_log)

    def watch(self, net: Net, noise: FloatArray = _NO_NOISE, follow: Ints = _NOTHING) -> tuple[float, Steps]:
        """Build a schedule, and return its goal and what was seen and done; what was told has one candidate."""
        log = self._log(self.p.n)
        cost = self._play(net, noise, follow, log)
        return cost, Steps(*(x[: self._steps] for x in log))

    def values(self, net: Net, steps: Steps, t: int) -> FloatArray:
        """Return the goals if step t takes each of its candidates, and `net` goes on from there, float64 (c,)."""
        before, cands = steps.taken()[:t], steps.cands[t, : steps.count[t]]
        then = np.stack([steps.window[t, cands[:, 0]], cands[:, 1]], axis=1)
        return np.array([self.play(net, follow=np.concatenate([before, [one]])) for one in then])

    def plan(self) -> Any:
        """Return the plan of the schedule built last."""
        return self.p.plan(self.option, self.start, self._rows[:, : self._used])

    def _play(self, net: Net, noise: FloatArray, follow: Ints, log: Any) -> float:
        made = Schedule(self.start, self.option, self._rows)
        cost, self._used, self._steps = play(
            self.order, follow, noise, net, self._data, self._static, self._room, self._busy, made, log
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
