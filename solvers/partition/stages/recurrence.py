"""PipeDream's recurrence over ideals, level by level: exact on all ideals, a heuristic on some.

A_l[b](I, J) is the least time of a group of level l that runs the stages from ideal I to ideal J as a pipeline over
its members, when b samples are under way in all later stages for each that is under way in the group:

    A_l[b](I, J) = min over I < K <= J, m of max(T(I, K, m), move(K)/m, A'(K, J)),

where T(I, K, m) = (A_{l-1}[ceil((S + b)/m)](I, K) + sync(m))/m is the first stage on m members, S the replicas behind
it in the group, and A' the rest of the pipeline on the other members, whose first stage waits for its input too
(Narayanan et al., SOSP 2019, section 3.1, with memory). Where memory is ample S and b do not matter and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray

from .family import Family

State = tuple[int, int]
"""Members used, replicas of all stages in them (0 where memory is ample)."""
_ROWS = 128
_DENSE = 0.1
"""Of a block of numbers fewer that matter are picked out, more are looked at all together."""


@dataclass(frozen=True)
class Option:
    """A way to run a stage: `replicas` of members or groups of devices, `used` members in all.

    Attributes:
        what: the row of the menu at the innermost level, the replicas inside each member above.
        workers: replicas of all innermost stages it comes to.
    """

    used: int
    replicas: int
    what: int
    workers: int


@dataclass(frozen=True)
class Table:
    """The best pipelines of a group between any two ideals, by state; `fed` counts the first stage's inputs too."""

    plain: dict[State, FloatArray]
    fed: dict[State, FloatArray]


class Level:
    """Pipelines over the members of a group of one level.

    Args:
        family: the ideals.
        level: from 0, the innermost.
        tracked: whether memory depends on what is under way, so that replicas have to be counted.
        stopped: raises the alarm.
        cap: seconds; a group that takes longer is in no plan worth having.
    """

    def __init__(
        self, family: Family, level: int, tracked: bool, stopped: Callable[[], bool], cap: float = np.inf
    ) -> None:
        problem = family.problem
        self.family, self.level, self.tracked, self.stopped = family, level, tracked, stopped
        self.members = problem.members()[level]
        self.capacity = float(problem.capacity()[0])
        self.cap = cap * (1 + 1e-9)
        self.inner = Level(family, level - 1, tracked, stopped, cap * self.members) if level else None
        self.moves = family.moves(level)
        self.options = list(self._options())
        self.states = self._states()
        self._known = set(self.states)
        self.tables: dict[int, Table] = {}
        self._best: dict[tuple[int, int], FloatArray] = {}

    def _options(self) -> Iterator[Option]:
        if self.inner is None:
            for row, degree in enumerate(self.family.problem.options().degree.tolist()):
                for replicas in range(1, self.members // degree + 1):
                    yield Option(replicas * degree, replicas, row, replicas if self.tracked else 0)
            return
        for workers in self.inner.workers():
            for replicas in range(1, self.members + 1):
                yield Option(replicas, replicas, workers, replicas * workers)

    def workers(self) -> list[int]:
        """Return how many replicas of innermost stages a group can come to."""
        return sorted({workers for _, workers in self.states})

    def _states(self) -> list[State]:
        """Return all states but that of no stage, those with fewer members first."""
        found: set[State] = set()
        layer: set[State] = {(0, 0)}
        while layer:
            layer = {
                (m + x.used, s + x.workers) for m, s in layer for x in self.options if m + x.used <= self.members
            } - found
            found |= layer
        return sorted(found)

    def ways(self, state: State) -> Iterator[tuple[Option, State | None]]:
        """Yield each first stage, and what is left of `state` for the others."""
        members, workers = state
        for option in self.options:
            rest = (members - option.used, workers - option.workers)
            if rest == (0, 0):
                yield option, None
            elif rest in self._known:
                yield option, rest

    def later(self, option: Option, rest: State | None, behind: int) -> int:
        """Return how many samples each replica has under way behind it: ceil((S + b)/m)."""
        workers = 0 if rest is None else rest[1]
        return -(-(workers + behind) // option.replicas) if self.tracked else 0

    def stage(self, option: Option, later: int, rows: slice) -> FloatArray:
        """Return the seconds a sample of all stages that begin at `rows`, infinite where there is none."""
        if self.inner is None:
            own = self.family.leaf(option.what, option.replicas, later, rows, self.capacity)
            own += self.family.gap(rows)
            return own
        inner = self.inner.best(later, option.what)
        return self.family.nested(self.level, option.replicas, inner[rows], rows)

    def best(self, behind: int, workers: int) -> FloatArray:
        """Return the least time of a group between any two ideals, float64 (N, N), with that many replicas inside."""
        if (behind, workers) not in self._best:
            plain = self.table(behind).plain
            ends = [value for state, value in plain.items() if state[1] == workers]
            self._best[behind, workers] = np.minimum.reduce(ends)
        return self._best[behind, workers]

    def table(self, behind: int) -> Table:
        """Return the best pipelines between any two ideals.

        Raises:
            TimeoutError: if the time is up.
        """
        if behind not in self.tables:
            self.tables[behind] = self._fill(behind)
        return self.tables[behind]

    def _fill(self, behind: int) -> Table:
        plain: dict[State, FloatArray] = {}
        fed: dict[State, FloatArray] = {}
        stages: dict[tuple[Option, int], FloatArray] = {}
        everything = slice(0, len(self.family))
        for state in self.states:
            total = np.full((len(self.family), len(self.family)), np.inf)
            waiting = total.copy() if self.moves.any() else total
            for option, rest in self.ways(state):
                later = self.later(option, rest, behind)
                if (option, later) not in stages:
                    found = self.stage(option, later, everything)
                    stages[option, later] = np.where(found <= self.cap, found, np.inf)
                found = stages[option, later]
                if rest is not None:
                    found = self._joined(np.maximum(found, self.moves / option.replicas), fed[rest])
                np.minimum(total, found, out=total)
                if waiting is not total:
                    np.minimum(waiting, np.maximum(found, self.moves[:, None] / option.replicas), out=waiting)
            plain[state], fed[state] = total, waiting
        return Table(plain, fed)

    def _joined(self, first: FloatArray, rest: FloatArray) -> FloatArray:
        """Return the (min, max) product: the best ideal between a first stage and the rest."""
        total = np.full_like(first, np.inf)
        for k in range(1, len(first) - 1):
            if not k % 64 and self.stopped():
                raise TimeoutError
            rows, columns = np.flatnonzero(first[:k, k] < np.inf), np.flatnonzero(rest[k] < np.inf)
            if not len(rows) or not len(columns):
                continue
            a, b, c, d = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
            if len(rows) * len(columns) > _DENSE * (b - a) * (d - c):
                corner = total[a:b, c:d]
                np.minimum(corner, np.maximum(first[a:b, k, None], rest[k, c:d]), out=corner)
            else:
                where = np.ix_(rows, columns)
                total[where] = np.minimum(total[where], np.maximum(first[rows, k, None], rest[k, columns]))
        return total

    def top(self) -> dict[State, FloatArray]:
        """Return the least time from each ideal to the last, by state, where the first stage waits for its input.

        Raises:
            TimeoutError: if the time is up.
        """
        n = len(self.family)
        fed = {state: np.full(n, np.inf) for state in self.states}
        ways = {state: list(self.ways(state)) for state in fed}
        # a stage ends at a larger ideal than it begins at, and larger ones come later
        for start in reversed(range(0, n - 1, _ROWS)):
            rows = slice(start, min(start + _ROWS, n - 1))
            stages: dict[tuple[Option, int], FloatArray] = {}
            for state, choices in ways.items():
                if self.stopped():
                    raise TimeoutError
                for option, rest in choices:
                    later = self.later(option, rest, 0)
                    if (option, later) not in stages:
                        stages[option, later] = self.stage(option, later, rows)
                    found = self._ended(stages[option, later], option, rest, fed)
                    found = np.maximum(found, self.moves[rows] / option.replicas)
                    np.minimum(fed[state][rows], found, out=fed[state][rows])
        return fed

    def _ended(self, stage: FloatArray, option: Option, rest: State | None, fed: dict[State, FloatArray]) -> FloatArray:
        if rest is None:
            return np.asarray(stage[:, -1])
        behind = np.maximum(fed[rest], self.moves / option.replicas)
        return np.asarray(np.maximum(stage, behind).min(axis=1))


def effort(family: Family, tracked: bool) -> float:
    """Return how many numbers the recurrence looks at, at most."""
    n = float(len(family))
    level: Level | None = Level(family, len(family.problem.members()) - 1, tracked, lambda: False)
    behind, total, pairs = {0}, 0.0, n * n
    while level is not None:
        # what is under way behind the members of this level, however its pipelines are put together
        inside: set[int] = set()
        for state in level.states:
            for option, rest in level.ways(state):
                total += pairs * len(behind)
                if level.inner is not None:
                    inside |= {level.later(option, rest, b) for b in behind}
        behind, pairs, level = inside, family.density**2 * n**3 / 6, level.inner
    return total
