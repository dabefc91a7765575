"""What CP-SAT models of groups in slots share: slots that are devices of a type, memory, the greatest load or time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances.arrays import BoolArray, FloatArray, IntArray

from ..cpsat_solver import cpsat_solver, minimise
from ..run import Run, watched
from .sizes import CoverCuts, Sizes

T = TypeVar("T")


class DeviceModel:
    """Minimise z, where group g is in slot s if x[g][s], and slot s is of type t if y[s][t].

    Attributes:
        covers: learns what does not go together.
        ceiling: seconds that no plan wanted exceeds, `top` units.
        group_of: the group of each op, -1 for one without, int (n,).
    """

    x: list[list[Any]]
    y: list[dict[int, Any]]
    z: Any

    def __init__(self, run: Run, covers: CoverCuts, ceiling: float, top: int, group_of: IntArray) -> None:
        self.run, self.covers, self.group_of, self.top = run, covers, group_of, top
        self.model, self.ceiling = cp_model.CpModel(), run.objective if run.objective is not None else ceiling
        self.scale = top / self.ceiling if self.ceiling > 0 else 1.0

    def build(self, *parts: Callable[[], None], hint: Callable[[Any], None]) -> None:
        """Add the parts one by one, then the best bound and plan known; leave off once the run has stopped."""
        for part in parts:
            if self.run.stopped:
                return
            part()
        self.model.minimize(self.z)
        if self.run.bound is not None:
            self.model.add(self.z >= int(self.run.bound * self.scale))
        if self.run.plan is not None:
            hint(self.run.plan)

    def units(self, seconds: float) -> int:
        """Return seconds as an integer, rounded down, so that bounds hold."""
        # whatever is beyond the ceiling is equally forbidden; 64 bits would overflow
        return int(min(seconds * self.scale, 2 * self.top))

    def watched(self, items: Iterable[T], often: int = 32) -> Iterator[T]:
        """Yield the items, and look at the clock now and then."""
        return watched(items, lambda: self.run.stopped, often)

    def types(self, kinds: Sequence[Sequence[int]], count: dict[int, int], runs: Callable[[int], BoolArray]) -> None:
        """Add (T): each slot is one device, n[t] of type t; x[g, s] = 0 where that cannot run g.

        Args:
            kinds: the types that each slot may be of: all slots several, or all one.
            count: n[t] of each type.
            runs: returns which groups a type runs, bool (G,).
        """
        model, free = self.model, max(map(len, kinds), default=0) > 1
        self.y = [{t: model.new_bool_var("") if free else True for t in row} for row in kinds]
        if free:
            for row in self.y:
                model.add_exactly_one(row.values())
            for t, n in count.items():
                model.add(sum(row[t] for row in self.y) == n)
        for t in count:
            for g in np.flatnonzero(~runs(t)).tolist():
                for x, row in zip(self.x[g], self.y, strict=True):
                    if t in row:
                        model.add_implication(x, ~row[t]) if free else model.add(x == 0)

    def given(self, s: int, t: int) -> list[Any]:
        """Return the condition that slot s is of type t, empty if that is known."""
        return [] if self.y[s][t] is True else [self.y[s][t]]

    def compute(self, s: int, seconds: FloatArray) -> Any:
        """Return what the groups in a slot take of some seconds, (G,), in units."""
        return sum(self.units(p) * row[s] for p, row in zip(seconds.tolist(), self.x, strict=True) if np.isfinite(p))

    def between(self, x: Any, reached: Any, beyond: Any) -> None:
        """Add x = reached - beyond, where what is beyond is reached."""
        self.model.add_implication(beyond, reached)
        self.model.add_implication(x, reached)
        self.model.add_implication(x, ~beyond)
        self.model.add_bool_or(x, ~reached, beyond)

    def hold(self, sizes: Sizes, limit: float, here: Sequence[Any], given: list[Any]) -> None:
        """Add (M): the groups that are here fit together, but for what is too large alone, which is barred."""
        if sizes.binds:
            used = sum(m * x for m, x in zip(sizes.size.tolist(), here, strict=True) if m)
            self.model.add(used <= sizes.room).only_enforce_if(given)
        for cover in self.covers.of(limit):
            self.model.add_bool_or([~here[g] for g in cover]).only_enforce_if(given)

    def solve(self, plan: Callable[[Any], Any], *, instantiate: bool = True) -> None:
        """Minimise to the end of the run, by what makes a plan of a solution's values.

        `instantiate`: whether CP-SAT decides on variables that take their least values once the rest is fixed.
        """
        solver = cpsat_solver(self.run)
        solver.parameters.instantiate_all_variables = instantiate

        def kept(value: Any) -> Any:
            return self.covers.kept(self.run, plan(value), self.group_of, "cpsat")

        minimise(self.run, solver, self.model, self.scale, kept)
