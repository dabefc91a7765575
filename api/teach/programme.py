"""The plain models as data: what the library's solvers are given, with names that can be read, in seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
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
from gangplan.solvers.plain import TICKS
from gangplan.solvers.schedule.grain import common

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
    _, lp, unit = _captured(problem, "plain_milp", below)
    display = 1000.0 ** min(0, max(-3, floor(log(unit, 1000)))) if problem.objective != "placement" else 1.0
    names, factor = Names(problem), unit / display

    def scaled(x: float, by: float) -> float:
        return float(f"{x * by:.{_DIGITS}g}")

    if lp.objective.constant:
        raise AssertionError("the constant of an objective has a column of its own")
    order = {x: j for j, x in enumerate(dict.fromkeys([*lp.objective, *(x for row in lp.rows for x in row)]))}
    columns, labels = [], []
    for x in order:
        name, items, family = names.variable(lp.names.get(x.name, x.name))
        by = factor if family.seconds else 1.0
        cost = scaled(lp.objective.get(x, 0.0), 1.0 if family.seconds else factor)
        low, high = (scaled(end, by) for end in (x.lowBound, x.upBound))
        columns.append(Column(name, low, high, x.cat == "Integer", cost, family.seconds))
        labels.append(items)
    rows = []
    for letter, row in zip(_letters(lp.letters, len(lp.rows)), lp.rows, strict=True):
        inside = [order[x] for x in row]
        if not inside and row.valid():
            continue  # such as that no slot is of a type of which there are no devices
        timed = any(columns[j].timed for j in inside)
        others = factor if timed else 1.0
        terms = {order[x]: scaled(a, 1.0 if columns[order[x]].timed else others) for x, a in row.items()}
        side = scaled(-row.constant, others)
        ends = None if row.sense < 0 else side, None if row.sense > 0 else side
        rows.append(Row(names.row(letter, [labels[j] for j in inside]), *ends, terms))
    return Programme(problem.objective, display, tuple(columns), tuple(rows))


def cpsat(problem: Any) -> Any:
    """Return the plain model of CP-SAT, a `cp_model.CpModel`; its objective is in seconds, or what the goal is in.

    If all times of a partition are multiples of a tick, the model counts in ticks and is exact; else it counts in parts
    of the largest objective, rounded down: a relative error of 1e-8.
    """
    tick, worst = _tick(problem)
    scale, constant, model = _captured(problem, "plain_cpsat", tick and tick * TICKS * _ABOVE)
    names, proto, labels = Names(problem), model.proto, []
    for x in proto.variables:
        if not x.name:  # a constant that CP-SAT made a variable of
            x.name = f"fixed_{x.domain[0]}"
        x.name, items, _ = names.variable(x.name)
        labels.append(items)
        if tick and x.domain[1] == TICKS:
            x.domain[1] = ceil(worst / tick)
    for letter, row in zip(_letters(model.letters, len(proto.constraints)), proto.constraints, strict=True):
        row.name = names.row(letter, [labels[j] for j in _columns(row)])
    proto.objective.offset += constant * scale
    proto.objective.scaling_factor = float(f"{1 / scale:.{_DIGITS - 1 if tick else 17}g}")
    return model


def _captured(problem: Any, method: str, unit: float | None) -> tuple[Any, Any, Any]:
    """Return what a plain model hands its solver: (run, programme, unit), or (scale, constant, model) for CP-SAT."""
    objective = getattr(problem, "objective", None)
    if objective not in OBJECTIVES:
        raise InstanceError("problem", f"{type(problem).__name__} has no plain model")
    run, caught = Run(problem, time_limit=_SECONDS), list[tuple[Any, Any, Any]]()
    run.objective = unit  # what `refine` takes for the unit

    def by_milp(run: Run, lp: Any, unit: float, plan: Callable[[], Any]) -> None:
        caught.append((run, lp, unit))

    def by_cpsat(run: Run, model: Any, scale: float, plan: Any, constant: float = 0.0, **options: Any) -> None:
        caught.append((scale, constant, model))

    function: Any = suite(objective).methods[method].function
    try:
        function(run, None, minimise=by_milp if method == "plain_milp" else by_cpsat)
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


def _letters(marks: list[tuple[int, str]], count: int) -> list[str]:
    """Return the letter of each row of a model that said from which row on each letter is."""
    found: list[str] = []
    for (begin, name), (end, _) in pairwise([*marks, (count, "")]):
        found += [name] * (end - begin)
    return found


def _columns(row: Any) -> list[int]:
    """Return the variables of a constraint of CP-SAT, intervals aside."""
    literals = [*row.enforcement_literal]
    for kind in ("bool_or", "bool_and", "exactly_one", "at_most_one"):
        if getattr(row, f"has_{kind}")():
            literals += getattr(row, kind).literals
    found = [j if j >= 0 else -j - 1 for j in literals]
    if row.has_linear():
        found += row.linear.vars
    if row.has_interval():
        found += [*row.interval.start.vars, *row.interval.end.vars]
    return found
