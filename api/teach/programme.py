"""The plain models as data: what the library's solvers are given, with names that can be read, in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.certificates.linear import LinearModel
from gangplan.solvers import Run
from gangplan.solvers.method import OBJECTIVES, suite
from gangplan.solvers.partition.step.plain import delays
from gangplan.solvers.partition.textbook import Textbook
from gangplan.solvers.plain import TICKS, PlainRows
from gangplan.solvers.schedule.grain import common

from .integers import Integers, columns_of
from .names import Names

_SECONDS = 300.0
"""Time that building a model may take: no solver runs."""
_DIGITS = 12
"""Significant digits of a number: those after them are rounding errors of a change of unit."""
_ABOVE = 1 - 2.0**-40
"""A tick is so much shorter that multiples of it, which are rounded down, stay the multiple."""


@dataclass(frozen=True, slots=True)
class Column:
    """A variable: name, bounds, whether it is a whole number, its cost, and whether it is in the objective's unit."""

    name: str
    low: float
    high: float
    whole: bool
    cost: float
    timed: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A constraint: least <= sum of coefficient x column <= most, `None` where there is no limit."""

    name: str
    least: float | None
    most: float | None
    terms: dict[int, float]

    @property
    def letter(self) -> str:
        """The letter of its constraint in the formulation."""
        return self.name.partition("[")[0].partition(".")[0]


@dataclass(frozen=True, slots=True)
class Programme:
    """A mixed-integer linear programme to minimise.

    Attributes:
        unit: seconds of a unit of the objective, or what else the goal is in: 1, 1e-3, 1e-6 or 1e-9.
        columns: those of the objective come first.
    """

    objective: str
    unit: float
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def exact(self, goal: float) -> LinearModel:
        """Return the programme in rational numbers, in a unit near `goal`, so that duals are about 1 or less."""
        unit = Fraction(2) ** round(log(max(goal, 1e-300), 2))
        model = LinearModel(Fraction(self.unit) * unit)
        scaled = [unit if column.timed else Fraction(1) for column in self.columns]
        for column, by in zip(self.columns, scaled, strict=True):
            j = model.column(Fraction(column.high) / by, whole=column.whole)
            model.low[j] = Fraction(column.low) / by
            model.cost[j] = Fraction(column.cost) * by / unit
        for row in self.rows:
            of_row = unit if any(self.columns[j].timed for j in row.terms) else Fraction(1)
            terms = {j: Fraction(x) * scaled[j] / of_row for j, x in row.terms.items()}
            model.row(terms, *(None if end is None else Fraction(end) / of_row for end in (row.least, row.most)))
        return model

    def value(self, values: Any) -> float:
        """Return the objective of columns' values, in units."""
        return float(sum(column.cost * float(x) for column, x in zip(self.columns, values, strict=True)))


def milp(problem: Any, below: float | None = None) -> Programme:
    """Return the plain MILP of a problem, as `solve(..., method="plain_milp")` has it.

    Args:
        below: only plans of at most so much, such as the objective of one that is known, are of interest: big M and
            bounds of columns are as tight as that allows. In seconds, or what the goal is in.

    Raises:
        InstanceError: the problem has no plain model.
    """
    if below is not None:
        require_number(below, "below", positive=True)
    model = _captured(problem, "plain_milp", below)
    unit = model.unit
    display = 1000.0 ** min(0, max(-3, floor(log(unit, 1000)))) if problem.objective != "placement" else 1.0
    names, factor = Names(problem), unit / display

    def scaled(x: float | None, by: float) -> Any:
        return None if x is None else float(f"{x * by:.{_DIGITS}g}")

    if model.goal.constant:
        raise AssertionError("the constant of an objective has a column of its own")
    used = dict.fromkeys([*model.goal.terms, *(j for row in model.lines for j in row.terms)])
    order = {j: i for i, j in enumerate(used)}
    columns, labels = [], []
    for j in order:
        x = model.columns[j]
        name, items, family = names.variable(x.letter, x.at)
        by = factor if family.seconds else 1.0
        cost = scaled(model.goal.terms.get(j, 0.0), 1.0 if family.seconds else factor)
        columns.append(Column(name, scaled(x.low, by), scaled(x.high, by), x.whole, cost, family.seconds))
        labels.append(items)
    rows = []
    for row in model.lines:
        if not row.terms and (row.least or 0) <= 0 <= (row.most or 0):
            continue  # such as that no slot is of a type of which there are no devices
        inside = [order[j] for j in row.terms]
        others = factor if any(columns[i].timed for i in inside) else 1.0
        terms = {order[j]: scaled(a, 1.0 if columns[order[j]].timed else others) for j, a in row.terms.items()}
        name = names.row(row.letter, [labels[i] for i in inside])
        rows.append(Row(name, scaled(row.least, others), scaled(row.most, others), terms))
    return Programme(problem.objective, display, tuple(columns), tuple(rows))


def cpsat(problem: Any) -> Integers:
    """Return the plain model of CP-SAT with names that can be read.

    If all times of a partition are multiples of a tick, the model counts in ticks and is exact; else it counts in parts
    of the largest objective, rounded down: a relative error of 1e-8.
    """
    tick, worst = _tick(problem)
    rows = _captured(problem, "plain_cpsat", tick and tick * TICKS * _ABOVE)
    names, labels = Names(problem), []
    for j, column in enumerate(rows.columns):
        name, items, _ = names.variable(column.letter, column.at)
        labels.append(items)
        high = ceil(worst / tick) if tick and column.high == TICKS else column.high
        rows.columns[j] = column._replace(letter=name, high=high)
    for i, entry in enumerate(rows.entries):
        rows.entries[i] = entry._replace(letter=names.row(entry.letter, [labels[j] for j in columns_of(entry)]))
    return Integers(rows, float(f"{1 / rows.scale:.{_DIGITS - 1 if tick else 17}g}"))


def _captured(problem: Any, method: str, unit: float | None) -> PlainRows:
    """Return the rows that a plain model hands its solver."""
    objective = getattr(problem, "objective", None)
    if objective not in OBJECTIVES:
        raise InstanceError("problem", f"{type(problem).__name__} has no plain model")
    run, caught = Run(problem, time_limit=_SECONDS), list[PlainRows]()
    run.objective = unit  # what `refine` takes for the unit
    function: Any = suite(objective).methods[method].function
    try:
        function(run, None, minimise=lambda rows, plan: caught.append(rows))
    except NotImplementedError as error:
        raise InstanceError("problem", f"has no {method} model: {error}") from None
    if not caught:
        raise InstanceError("problem", f"has no {method} model: {'; '.join(run.notes) or 'nothing to decide'}")
    return caught[0]


def _tick(problem: Any) -> tuple[float | None, float]:
    """Return the largest tick that all times of a partition are multiples of, and what no best plan is above."""
    if getattr(problem, "objective", None) not in ("throughput", "latency", "step"):
        return None, 0.0
    t = Textbook.of(problem)
    times = [*(x for row in t.time for x in row), *t.cost]
    if problem.objective == "step":
        times += [delay for *_, delay in delays(problem, t)]
    worst = t.work + sum(t.cost) * (len(t.devices) + 1)
    tick = common(np.array(times), TICKS / (len(t.ops) + 1))
    return tick if 0 < worst < tick * TICKS / 2 else None, worst
