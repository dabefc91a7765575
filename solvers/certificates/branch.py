"""A branch and bound of our own over HiGHS's linear programmes, which shows its tree: leaf by leaf the duals.

HiGHS is trusted with nothing: its duals are rounded to rationals and what they prove is computed exactly, by the same
lines that check the certificate. A node that HiGHS has no good duals for is split, or proves less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, floor
from typing import Any

import highspy
import numpy as np

from gangplan.instances.certificates.linear import LinearModel, TreeCertificate, dual_value

from .. import highs

_BITS = 36
"""Of multipliers, which are about 1 and less: 1e-11 each is lost."""
_CLOSE = Fraction(1, 10**7)
"""Share of the threshold that rounding may cost a leaf."""
_TINY = 1e-9
"""Distance from a whole number at which a value is one."""
_CANDIDATES, _STEPS = 8, 40
"""Columns of which both branches are tried, and simplex steps that each may take."""
_RAYS = 40
"""Doublings of a ray of an infeasible programme."""

Multipliers = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True, slots=True)
class BoundedNode:
    """A node that was looked at.

    Attributes:
        value: of its linear programme, in units; of its parent's if it has none.
        closed: whether its duals prove as much as the threshold.
        infeasible: whether HiGHS says that its linear programme has no solution.
        point: the solution of its linear programme, float64 (columns,); `None` if there is none, or none was needed.
        split: (column, k, node up to k, node beyond); `None` for a leaf.
    """

    node: int
    value: float
    closed: bool
    infeasible: bool
    point: Any
    split: tuple[int, int, int, int] | None

    @property
    def whole(self) -> bool:
        """Whether its solution is in whole numbers, so that nothing is left to split."""
        return self.point is not None and not self.closed and self.split is None


class BranchSearch:
    """One tree. `solve` grows it where least is proved; what there is no time for proves what its parent did."""

    def __init__(self, model: LinearModel, threshold: Fraction, seconds: Callable[[], float], most: int) -> None:
        self.model, self.threshold, self.seconds, self.left = model, threshold, seconds, most
        self.goal = threshold / model.unit
        self.solver = loaded(model)
        self.solver.setOptionValue("time_limit", max(seconds(), 0.0))  # of all runs together
        self.weight = np.zeros(len(model.cost))
        for _, _, terms in model.rows:
            if 0 in terms:  # rows of loads: the first column is the objective
                for j, x in terms.items():
                    self.weight[j] = max(self.weight[j], abs(float(x)))
        self.value = 0.0
        self.point: Any = None
        self.empty = False
        self.nodes, self.splits, self.leaves = 1, dict[int, tuple[int, int, int, int]](), dict[int, Multipliers]()

    def solve(self) -> TreeCertificate:
        """Return the tree with what was proved."""
        for _ in self.steps():
            pass
        return self._tree()

    def steps(self) -> Iterator[BoundedNode]:
        """Grow the tree, and yield each node once it was looked at; the root is node 0."""
        low, high = np.array(self.model.low, dtype=float), np.array(self.model.high, dtype=float)
        todo: list[tuple[float, int, Any, Any, Multipliers]] = [(0.0, 0, low, high, ())]
        while todo:
            self.value, node, low, high, known = heappop(todo)
            self.left -= 1
            self.point, self.empty = None, False
            closed, multipliers, split = self._look(low, high, known)
            if closed or split is None or self.left <= len(todo) or self.seconds() <= 0:
                self.leaves[node] = multipliers
                yield BoundedNode(node, self.value, closed, self.empty, self.point if split is None else None, None)
                continue
            column, at = split
            below, beyond = self.nodes, self.nodes + 1
            self.nodes += 2
            self.splits[node] = column, at, below, beyond
            down, up = high.copy(), low.copy()
            down[column], up[column] = at, at + 1
            heappush(todo, (self.value, below, low, down, multipliers))
            heappush(todo, (self.value, beyond, up, high, multipliers))
            yield BoundedNode(node, self.value, False, self.empty, self.point, self.splits[node])

    def aim(self, threshold: Fraction) -> None:
        """Close nodes from now on that prove as much as `threshold`, seconds: one that a solution has reached."""
        self.threshold = threshold
        self.goal = threshold / self.model.unit

    def _look(self, low: Any, high: Any, known: Multipliers) -> tuple[bool, Multipliers, tuple[int, int] | None]:
        """Return whether a node is closed, by which multipliers, and else where to split it."""
        if self.left < 0 or self.seconds() <= 0:
            return False, known, None
        ends = [Fraction(x) for x in low.tolist()], [Fraction(x) for x in high.tolist()]
        if known and self._closes(known, ends):
            return True, known, None
        status, value = self._run(low, high)
        self.empty = status == highspy.HighsModelStatus.kInfeasible
        if self.empty:
            multipliers = self._ray(ends, known)
            return self._closes(multipliers, ends), multipliers, self._any(low, high)
        if status != highspy.HighsModelStatus.kOptimal:
            return False, known, self._any(low, high)
        self.value = value
        solution = self.solver.getSolution()
        self.point = np.array(solution.col_value)
        multipliers = self._rational(np.array(solution.row_dual))
        if value >= float(self.goal) * (1 - 1e-7) and self._closes(multipliers, ends):
            return True, multipliers, None
        return False, multipliers, self._split(low, high, self.point, value)

    def _run(self, low: Any, high: Any) -> tuple[Any, float]:
        columns = np.arange(len(low), dtype=np.int32)
        self.solver.changeColsBounds(len(low), columns, low, high)
        self.solver.run()
        return self.solver.getModelStatus(), float(self.solver.getInfo().objective_function_value)

    def _closes(self, multipliers: Multipliers, ends: tuple[list[Fraction], list[Fraction]]) -> bool:
        return dual_value(self.model, multipliers, *ends) >= self.goal * (1 - _CLOSE)

    def _rational(self, duals: Any) -> Multipliers:
        """Return duals as multipliers: those that have the right sign, rounded."""
        whole = np.rint(duals * 2.0**_BITS)
        found = []
        for i in np.flatnonzero(whole).tolist():
            least, most, _ = self.model.rows[i]
            if (least if whole[i] > 0 else most) is not None:
                found.append((i, Fraction(int(whole[i]), 2**_BITS)))
        return tuple(found)

    def _ray(self, ends: tuple[list[Fraction], list[Fraction]], known: Multipliers) -> Multipliers:
        """Return multipliers that close a node without a solution: a ray, as often as it takes."""
        _, there, ray = self.solver.getDualRay()
        if not there:
            return known
        ray = np.array(ray) / max(1e-300, np.abs(ray).max())
        for sign in (1, -1):
            found = self._rational(sign * ray)
            for k in range(0, _RAYS, 4):
                much = tuple((i, y * 2**k) for i, y in found)
                if self._closes(much, ends):
                    return much
        return known

    def _split(self, low: Any, high: Any, values: Any, value: float) -> tuple[int, int] | None:
        """Return (column, k) of the split after which both parts are best, by some steps of each: strong branching."""
        values = np.clip(values, low, high)  # HiGHS lets them be out by 1e-7
        whole = np.flatnonzero(np.array(self.model.whole) & (low < high))
        away = np.abs(values[whole] - np.rint(values[whole]))
        open_ = whole[away > _TINY]
        if not len(open_):
            return None
        score = np.minimum(values[open_] % 1.0, 1 - values[open_] % 1.0) * (1e-3 + self.weight[open_])
        best, most = int(open_[int(np.argmax(score))]), -1.0
        basis = self.solver.getBasis()
        self.solver.setOptionValue("simplex_iteration_limit", _STEPS)
        for j in open_[np.argsort(-score)[:_CANDIDATES]].tolist():
            gains = []
            for end in (floor(values[j]), ceil(values[j])):
                self.solver.setBasis(basis)
                bounds = (low[j], float(end)) if end < values[j] else (float(end), high[j])
                self.solver.changeColBounds(j, *bounds)
                self.solver.run()
                status = self.solver.getModelStatus()
                reached = float(self.solver.getInfo().objective_function_value)
                far = status == highspy.HighsModelStatus.kInfeasible
                gains.append(float(self.goal) if far else min(float(self.goal), max(reached - value, 0.0)))
                self.solver.changeColBounds(j, low[j], high[j])
            merit = max(gains[0], 1e-7) * max(gains[1], 1e-7)
            if merit > most:
                best, most = j, merit
        self.solver.setOptionValue("simplex_iteration_limit", 2**31 - 1)
        self.solver.setBasis(basis)
        return best, floor(values[best])

    def _any(self, low: Any, high: Any) -> tuple[int, int] | None:
        whole = np.flatnonzero(np.array(self.model.whole) & (low < high))
        return (int(whole[0]), floor(low[whole[0]])) if len(whole) else None

    def _tree(self) -> TreeCertificate:
        """Return the nodes in the order of documents: those that split first."""
        inner, outer = sorted(self.splits), sorted(self.leaves)
        place = {i: k for k, i in enumerate([*inner, *outer])}
        splits = [self.splits[i] for i in inner]
        return TreeCertificate(
            self.threshold,
            tuple((column, at, place[below], place[beyond]) for column, at, below, beyond in splits),
            tuple(self.leaves[i] for i in outer),
        )


def loaded(model: LinearModel) -> Any:
    """Return HiGHS with the linear programme of a model in it, in floats; the objective may exceed its bound."""
    columns = model.cost, model.low, model.high
    return highs.loaded(*columns, model.rows, presolve="off", threads=1, simplex_strategy=1)
