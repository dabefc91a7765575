"""Refute a threshold by branching: a tree over a mixed-integer programme whose leaves are closed by duals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from ..errors import InstanceError
from .document import Certificate


@dataclass(slots=True)
class LinearModel:
    """A mixed-integer linear programme that every plan up to a threshold gives a solution of, no dearer than the plan.

    Attributes:
        unit: seconds of a unit of the objective, a power of two: rationals stay short.
        cost, low, high, whole: of each column; no column is without a bound.
        rows: (least, most, coefficients by column); `None` where there is no limit.
    """

    unit: Fraction
    cost: list[Fraction] = field(default_factory=list)
    low: list[Fraction] = field(default_factory=list)
    high: list[Fraction] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[Fraction | None, Fraction | None, dict[int, Fraction]]] = field(default_factory=list)

    def column(self, high: Fraction | int, *, cost: int = 0, whole: bool = False) -> int:
        """Add a variable from 0 to `high` and return its number."""
        self.cost.append(Fraction(cost))
        self.low.append(Fraction(0))
        self.high.append(Fraction(high))
        self.whole.append(whole)
        return len(self.cost) - 1

    def row(
        self,
        terms: Mapping[int, Fraction | int],
        least: Fraction | int | None = None,
        most: Fraction | int | None = None,
    ) -> None:
        """Add the constraint least <= sum of terms <= most."""
        ends = [None if x is None else Fraction(x) for x in (least, most)]
        self.rows.append((ends[0], ends[1], {j: Fraction(x) for j, x in terms.items() if x}))


def dual_value(
    model: LinearModel, multipliers: tuple[tuple[int, Fraction], ...], low: list[Fraction], high: list[Fraction]
) -> Fraction:
    """Return the bound that multipliers of rows prove within bounds of columns, in units: weak duality.

    With a multiplier y_i for row i, cost x >= sum of y_i times whichever end of row i it holds against, plus for each
    column the least of (cost - y A)_j x_j within its bounds. Whatever the multipliers are, that is true.
    """
    reduced, value = {j: x for j, x in enumerate(model.cost) if x}, Fraction(0)
    for i, y in multipliers:
        if not 0 <= i < len(model.rows):
            raise InstanceError("multipliers", f"{i} is not one of the {len(model.rows)} rows")
        least, most, terms = model.rows[i]
        end = least if y > 0 else most if y else Fraction(0)
        if end is None:
            raise InstanceError("multipliers", f"{y} of row {i} has the wrong sign")
        value += y * end
        for j, x in terms.items():
            reduced[j] = reduced.get(j, Fraction(0)) - y * x
    for j, r in reduced.items():
        if r:
            value += r * (low[j] if r > 0 else high[j])
    return value


@dataclass(frozen=True, slots=True)
class TreeCertificate(Certificate):
    """Split the plans below a threshold until linear programming closes every part.

    The programme is made by the checker, of the problem and the threshold: see `rows`. A node splits a whole-numbered
    column j: up to k, or from k + 1 on. A leaf has multipliers of rows. The bound is the least that a leaf proves, and
    no more than the threshold.

    Attributes:
        threshold: seconds; a plan that takes longer is no concern of the tree.
        splits: (column, k, node up to k, node beyond) of each node from the root on; a node from `len(splits)` on is a
            leaf. Children come after their parents.
        leaves: the multipliers of each leaf, as (row, multiplier).
    """

    objectives: ClassVar[tuple[str, ...]] = ("throughput",)

    threshold: Fraction
    splits: tuple[tuple[int, int, int, int], ...]
    leaves: tuple[tuple[tuple[int, Fraction], ...], ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the least bound of the leaves."""
        from .exact import SLACK
        from .rows import model_of

        if self.threshold <= 0:
            raise InstanceError("threshold", f"{self.threshold} is not above 0")
        model = model_of(problem, self.threshold)
        children = [node for split in self.splits for node in split[2:]]
        if len({*children}) < len(children):
            raise InstanceError("splits", "a node has two parents")
        inner, least = len(self.splits), self.threshold
        low, high = list(model.low), list(model.high)
        # (node, which of the two it changes, at which column, to what); -1 changes it back
        todo: list[tuple[int, list[Fraction], int, Fraction]] = [(0, low, 0, low[0])]
        while todo:
            node, ends, column, at = todo.pop()
            if node >= 0:
                todo.append((-1, ends, column, ends[column]))
            if node < 0 or (at > low[column] if ends is low else at < high[column]):
                ends[column] = at
            if node < 0 or low[column] > high[column]:
                continue
            if node >= inner:
                if node - inner >= len(self.leaves):
                    raise InstanceError("leaves", f"node {node} is missing")
                least = min(least, dual_value(model, self.leaves[node - inner], low, high) * model.unit)
                continue
            column, k, below, beyond = self.splits[node]
            if not 0 <= column < len(model.cost) or not model.whole[column]:
                raise InstanceError(f"splits[{node}]", f"{column} is no column of whole numbers")
            if min(below, beyond) <= node:
                raise InstanceError(f"splits[{node}]", "a node does not come after its parent")
            todo += [(below, high, column, Fraction(k)), (beyond, low, column, Fraction(k + 1))]
        return least / (1 + SLACK)
