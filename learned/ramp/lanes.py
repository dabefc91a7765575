"""Many episodes side by side, so that one pass of the network decides for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.compiled.kernel import kernel

from .candidates import MOST
from .history import SUMS, remember, turn_of
from .play import hold
from .rows import WIDTH, desk, write_rows
from .tables import Long
from .worlds import Episode, World

Draw = Callable[[np.random.Generator], Episode]
"""Draws an episode of the world."""


class Seen(NamedTuple):
    """The decisions of B lanes; A rows.

    Attributes:
        rows: features, float32 (A, WIDTH).
        first: the rows of lane i are those from ``first[i]`` to before ``first[i + 1]``, int64 (B + 1,).
        kind: type of the job of each lane, int64 (B,).
        over: whether an episode ended before this decision, bool (B,).
    """

    rows: NDArray[np.float32]
    first: Long
    kind: Long
    over: NDArray[np.bool_]


class Lanes:
    """B episodes of one world; where one ends, another one is drawn.

    Args:
        world: where.
        draw: draws the episodes, all of the same length.
        count: B.
        seed: of the draws. Lanes begin at different places of their first episodes, so that they do not end at once.
        choose: see `gangplan.learned.ramp.rows.desk`.
    """

    def __init__(self, world: World, draw: Draw, count: int, seed: int, *, choose: bool = True) -> None:
        self.world, self._draw, self.count = world, draw, count
        self.rng = np.random.default_rng(seed)
        self._desk = desk(world.tables, choose=choose)
        self._rows = np.zeros((count * MOST, WIDTH), np.float32)
        self._block = np.zeros(count * MOST, np.int64)
        self._first = np.zeros(count + 1, np.int64)
        first = [draw(self.rng) for _ in range(count)]
        n = len(first[0].kind)
        self._kind = np.stack([x.kind for x in first])
        self._beta = np.stack([x.beta for x in first])
        self._gap = np.stack([x.gap for x in first])
        self._at = self.rng.integers(0, n, count)
        self._end = np.full((count, world.tables.n), -1.0)
        self._now, self._sums = np.zeros(count), np.zeros((count, SUMS))

    def look(self) -> Seen:
        """Go to the next arrival in every lane, and return what there is to decide."""
        over = self._at >= self._kind.shape[1]
        for lane in np.flatnonzero(over).tolist():
            new = self._draw(self.rng)
            self._kind[lane], self._beta[lane], self._gap[lane] = new.kind, new.beta, new.gap
            self._at[lane], self._now[lane], self._end[lane], self._sums[lane] = 0, 0.0, -1.0, 0.0
        lanes = np.arange(self.count)
        kind, beta, gap = self._kind[lanes, self._at], self._beta[lanes, self._at], self._gap[lanes, self._at]
        world = self.world
        k = _look(
            self._end, self._now, self._sums, kind, beta, gap, world.tables, world.menus, self._desk, self._rows,
            self._block, self._first,
        )  # fmt: skip
        self._of = kind
        return Seen(self._rows[:k].copy(), self._first.copy(), kind, over)

    def act(self, place: Long) -> FloatArray:
        """Take a row of each lane's, by its place among them, and return 1 where a job is accepted, else 0."""
        reward = np.zeros(self.count)
        chosen = self._block[self._first[:-1] + place]
        _act(self._end, self._now, self._of, chosen, self.world.tables, self.world.menus, reward)
        self._at += 1
        return reward

    def state(self) -> dict[str, FloatArray]:
        """Return all that changes, but the generator, as arrays of float64."""
        names = ("_kind", "_beta", "_gap", "_at", "_end", "_now", "_sums")
        return {name: np.asarray(getattr(self, name), dtype=np.float64) for name in names}

    def load(self, state: dict[str, FloatArray]) -> None:
        """Go back to what `state` returned."""
        for name, value in state.items():
            getattr(self, name)[...] = value


@kernel
def _look(
    end: Any, now: Any, sums: Any, kind: Any, beta: Any, gap: Any, tables: Any, menus: Any, desk: Any, rows: Any,
    block: Any, first: Any,
) -> int:  # fmt: skip
    at = 0
    for lane in range(len(kind)):
        m = kind[lane]
        now[lane] += gap[lane]
        remember(sums[lane], beta[lane], menus.sequential[m], menus.efficiency[m], gap[lane])
        turn = turn_of(sums[lane], tables.n)
        k = write_rows(
            end[lane], now[lane], turn, tables, menus.jct[m], menus.sequential[m], beta[lane], sums[lane], desk
        )
        rows[at : at + k] = desk.row[:k]
        block[at : at + k] = desk.block[:k]
        at += k
        first[lane + 1] = at
    return at


@kernel
def _act(end: Any, now: Any, kind: Any, block: Any, tables: Any, menus: Any, reward: Any) -> None:
    for lane in range(len(kind)):
        b = block[lane]
        if b >= 0:
            reward[lane] = 1.0
            hold(end[lane], b, now[lane] + menus.jct[kind[lane], tables.shape[b]], tables)
