"""Refute a threshold of stages by looking at all pipelines below it: PipeDream's recurrence in whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf, prod
from typing import Any, ClassVar

import numpy as np

from ..errors import InstanceError
from .classes import bits, earlier, numbered
from .document import Certificate
from .exact import SLACK, Budget, exact

_IDEALS, _STEPS = 10_000, 10**10
"""Ideals, and numbers to look at, that any certificate may ask for: minutes."""
_NUMBERS = 2 * 10**8
"""Numbers in the tables of inner levels."""
_ROWS = 256
_NONE = 1 << 62
"""What no pipeline takes less than; all amounts stay below 2^61, so that no sum of 64 bits overflows."""

State = tuple[int, int]
"""Members used, replicas of stages in them (0 where these do not matter)."""


@dataclass(frozen=True, slots=True)
class RecurrenceCertificate(Certificate):
    """Find the least time of a pipeline of replicated stages, level by level, over all ideals of the order.

    A pipeline is a chain of ideals; its first stage runs on some members of the group, the rest on the others. Amounts
    are whole numbers of a small unit, rounded down, and what takes no less than the threshold is left out.

    Attributes:
        threshold: seconds.
        steps: numbers that are looked at until the search is over, at most.
    """

    objectives: ClassVar[tuple[str, ...]] = ("stages",)

    threshold: Fraction
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the least time or the threshold: without memory, and with it if that proves too little."""
        if self.threshold <= 0:
            raise InstanceError("threshold", f"{self.threshold} is not above 0")
        family, top = _IdealFamily(problem, self.threshold, min(self.steps, _STEPS)), len(problem.members()) - 1
        value = _GroupPipelines(family, top, memory=False).least()
        if value < family.one and problem.capacity()[0] < inf and problem.memory_model != "none":
            value = _GroupPipelines(family, top, memory=True).least()
        return self.threshold * Fraction(min(value, family.one), family.one) / (1 + SLACK)


class _IdealFamily:
    """All N ideals, smaller ones first, and what has been done at each in whole numbers: of seconds and of bytes.

    Attributes:
        one: the threshold.
    """

    def __init__(self, problem: Any, threshold: Fraction, steps: int) -> None:
        self.problem, self.steps = problem, Budget(steps)
        of = numbered(problem.graph.colocation.tolist())
        self.bits = np.array(list(_ideals(problem, of)), dtype=np.int64)
        self.absent = (1 - self.bits).T.astype(np.float32)
        count, devices = self.bits.shape[1], problem.cluster.n_devices
        self.one = 1 << 60 - (8 * count * (devices + 1) ** 2).bit_length()
        self.second = self.one / threshold
        self.longest = 8 * devices * self.one
        limit = problem.capacity()[0]
        self.room = Fraction(limit) * (1 + SLACK) if limit < inf else Fraction(1)
        self.byte = self.one / (self.room or Fraction(1))
        menu, (once, kept) = problem.options(), problem.need()
        seconds = exact(problem.seconds())
        cannot = [[Fraction(x == inf) for x in row] for row in seconds]
        self.barred = self._sums(of, cannot, Fraction(1))
        self.seconds = self._sums(of, [[Fraction(x if x < inf else 0) for x in row] for row in seconds], self.second)
        self.once, self.kept = (self._sums(of, exact(x), self.byte) for x in (once, kept))
        # of each level the bytes of weights at each degree, or of the whole, and how many ops have any
        whole = exact(problem.graph.parameter_bytes[None])
        self.weights, self.holders = list[Any](), list[Any]()
        for level, link in enumerate(problem.levels()):
            rows = whole if level else exact(menu.parameter_bytes)
            rate = self.second * 4 / Fraction(link.bandwidth) / prod(problem.members()[:level])
            self.weights.append(self._sums(of, rows, rate))
            self.holders.append(self._sums(of, [[Fraction(x > 0) for x in row] for row in rows], Fraction(1)))
        self._cut(of)

    def whole(self, amount: Fraction | float) -> int:
        """Return an amount rounded down; beyond `longest` it does not matter how much."""
        return int(min(amount, self.longest))

    def _sums(self, of: tuple[int, ...], rows: list[list[Any]], unit: Fraction) -> Any:
        """Add up rows over the ops of each ideal, int64 (rows, N)."""
        total = [[Fraction(0)] * self.bits.shape[1] for _ in rows]
        for i, g in enumerate(of):
            for k, row in enumerate(rows):
                total[k][g] += row[i]
        return np.array([[self.whole(x * unit) for x in row] for row in total], dtype=np.int64) @ self.bits.T

    def _cut(self, of: tuple[int, ...]) -> None:
        """Set what crosses each ideal: bytes, less what the verifier's running sums may lose."""
        source, target, sent = self.problem.forward_edges()
        size = [Fraction(x) for x in sent.tolist()]
        receivers: dict[int, set[int]] = {}
        for u, v in zip(source.tolist(), target.tolist(), strict=True):
            receivers.setdefault(u, set()).add(of[v])
        unit = sum((size[u] for u in receivers), Fraction(0)) / 2**50 or Fraction(1)
        count = np.zeros(len(self.bits), dtype=np.int64)
        for u, groups in receivers.items():
            count += int(size[u] / unit) * (self.bits[:, of[u]] & ~self.bits[:, sorted(groups)].all(axis=1))
        self.crossing = [max(0, x - 2 * len(of)) * unit for x in count.tolist()]
        self.inputs = np.array([self.whole(x * self.byte) for x in self.crossing], dtype=np.int64)

    def moves(self, level: int) -> Any:
        """Return the time to move what crosses each ideal, int64 (N,)."""
        if not self.problem.activations:
            return np.zeros(len(self.bits), dtype=np.int64)
        link, ways = self.problem.levels()[level], 2 if self.problem.training else 1
        each = [ways * (Fraction(link.latency) + x / Fraction(link.bandwidth)) if x else 0 for x in self.crossing]
        return np.array([self.whole(x * self.second) for x in each], dtype=np.int64)

    def sync(self, level: int, row: int, replicas: int, rows: slice) -> Any:
        """Return the time of synchronising the replicas of stages from each of `rows` to each ideal."""
        if not self.problem.training:
            return 0
        wait = self.whole(2 * (replicas - 1) * Fraction(self.problem.levels()[level].latency) * self.second)
        size = _between(self.weights[level][row], rows) // replicas * (replicas - 1)
        return size + wait * (_between(self.holders[level][row], rows) > 0)


def _between(total: Any, rows: slice) -> Any:
    return total[None, :] - total[rows, None]


def _ideals(problem: Any, of: tuple[int, ...]) -> Iterator[list[int]]:
    """Yield the sets of classes with all that come before them, as rows of 0 and 1, smaller ones first."""
    above = earlier(problem, of)
    count = len(above)
    known, todo = {0}, [0]
    for ideal in todo:
        for v in range(count):
            new = ideal | above[v]
            if new not in known and not any(above[w] != above[v] for w in bits(above[v] & ~ideal)):
                known.add(new)
                todo.append(new)
        if len(todo) > _IDEALS:
            raise InstanceError("steps", f"there are more than {_IDEALS} ideals")
    for ideal in sorted(todo, key=lambda x: (x.bit_count(), x)):
        yield [ideal >> g & 1 for g in range(count)]


class _GroupPipelines:
    """Pipelines over the members of a group of a level, from any ideal to any other."""

    def __init__(self, family: _IdealFamily, level: int, *, memory: bool) -> None:
        problem = family.problem
        self.family, self.level, self.memory = family, level, memory
        self.members, self.tracked = problem.members()[level], memory and problem.training
        self.cap = family.one * prod(problem.members()[level + 1 :])
        self.inner = _GroupPipelines(family, level - 1, memory=memory) if level else None
        self.moves, self.known = family.moves(level), dict[int, dict[State, Any]]()
        # (members used, replicas, row of the menu or replicas inside each, replicas of stages)
        self.options: list[tuple[int, int, int, int]] = []
        if self.inner is None:
            for row, degree in enumerate(problem.options().degree.tolist()):
                each = range(1, self.members // degree + 1)
                self.options += [(r * degree, r, row, r if self.tracked else 0) for r in each]
        else:
            inside: list[int] = sorted({workers for _, workers in self.inner.states})
            self.options = [(r, r, x, r * x) for x in inside for r in range(1, self.members + 1)]
        found: set[State] = {(0, 0)}
        for _ in range(self.members):
            found |= {(m + used, s + x) for m, s in found for used, _, _, x in self.options if m + used <= self.members}
        self.states: list[State] = sorted(found - {(0, 0)})

    def least(self) -> int:
        """Return the least time of a pipeline of everything."""
        return min((int(x[0, 0]) for x in self.fill(0, slice(-1, None), fed=True).values()), default=_NONE)

    def best(self, behind: int, workers: int) -> Any:
        """Return the least times with so many replicas in a group, int64 (N, N)."""
        if behind not in self.known:
            n = len(self.family.bits)
            if n * n * (2 * len(self.states) + 2) > _NUMBERS:
                raise InstanceError("steps", f"{n} ideals are too many for pipelines inside of others")
            self.known[behind] = self.fill(behind, slice(0, n), fed=False)
        return np.minimum.reduce([x for state, x in self.known[behind].items() if state[1] == workers])

    def fill(self, behind: int, columns: slice, *, fed: bool) -> dict[State, Any]:
        """Return the least times from each ideal to those of `columns`, by state.

        Args:
            behind: samples under way behind the group for each in it.
            fed: whether its first stage waits for its inputs too.
        """
        n, width = len(self.family.bits), len(range(len(self.family.bits))[columns])
        plain = {state: np.full((n, width), _NONE) for state in self.states}
        waits = plain if fed else {state: np.full((n, width), _NONE) for state in self.states}
        for start in reversed(range(0, n, _ROWS)):
            rows, known = slice(start, min(n, start + _ROWS)), dict[Any, Any]()
            for members, workers in self.states:
                total, waiting = plain[members, workers][rows], waits[members, workers][rows]
                for used, replicas, what, own in self.options:
                    rest = members - used, workers - own
                    later = -(-(rest[1] + behind) // replicas) if self.tracked else 0
                    if any(rest) and rest not in plain:
                        continue
                    self.family.steps.take(n * (rows.stop - start))
                    key = replicas, what, later
                    if key not in known:
                        known[key] = self.stage(replicas, what, later, rows)
                    found, moves = known[key], self.moves // replicas
                    found = self._joined(np.maximum(found, moves), waits[rest]) if any(rest) else found[:, columns]
                    np.minimum(waiting, np.maximum(found, moves[rows, None]), out=waiting)
                    if not fed:
                        np.minimum(total, found, out=total)
            for table in (plain, waits):
                for x in table.values():
                    x[rows][x[rows] >= self.cap] = _NONE
        return plain

    def stage(self, replicas: int, what: int, later: int, rows: slice) -> Any:
        """Return the times of stages from each of `rows` to each ideal; `_NONE` where there is none below the cap."""
        family, size = self.family, self.family.bits.sum(axis=1)
        if self.inner is not None:
            inner = self.inner.best(later, what)[rows]
            # a time of 2^62 stays one
            time = np.where(inner < _NONE, inner, 0) + family.sync(self.level, 0, replicas, rows)
            return np.where((inner < _NONE) & (time // replicas < self.cap), time // replicas, _NONE)
        time = _between(family.seconds[what], rows) + family.sync(0, what, replicas, rows)
        time //= replicas
        good = (time < self.cap) & (_between(family.barred[what], rows) == 0)
        good &= (size[None] > size[rows, None]) & (family.bits[rows].astype(np.float32) @ family.absent < 0.5)
        if self.memory:
            stash = _between(family.kept[what], rows)
            if family.problem.recompute:
                stash += family.inputs[rows, None]
            good &= _between(family.once[what], rows) + later * stash <= family.one
        return np.where(good, time, _NONE)

    def _joined(self, first: Any, rest: Any) -> Any:
        """Return the least over ideals between of the longer of a first stage and the rest."""
        if rest.shape[1] == 1:
            return np.maximum(first, rest[:, 0]).min(axis=1, initial=_NONE)[:, None]
        total = np.full((len(first), rest.shape[1]), _NONE)
        for k in np.flatnonzero((first < _NONE).any(axis=0)).tolist():
            rows, columns = np.flatnonzero(first[:, k] < _NONE), np.flatnonzero(rest[k] < _NONE)
            if len(rows) and len(columns):
                self.family.steps.take(len(rows) * len(columns))
                where = np.ix_(rows, columns)
                total[where] = np.minimum(total[where], np.maximum(first[rows, k, None], rest[k, columns]))
        return total
