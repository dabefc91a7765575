"""The linear relaxation of a plain MILP, with its duals, and cuts that bring it nearer to the optimum, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.certificates.classes import classes_of
from gangplan.instances.certificates.rows import apart
from gangplan.solvers.certificates.branch import loaded

from .names import Names, items
from .programme import Column, Programme, Row, milp

_VIOLATED = 1e-6
"""What a cut must be violated by, as a share of its right side, to count."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """The optimum of a linear relaxation.

    Attributes:
        bound: no plan is better: in seconds, or what the goal is in; infinite if the relaxation has no solution.
        value: the same in units of the programme, as values and duals are.
        values: of columns by name, those that are not 0.
        duals: of rows by name, those that are not 0: what the bound would rise by if the row's side rose by 1.
        fractional: names of columns that should be whole and are not.
    """

    programme: Programme
    bound: float
    value: float
    values: Mapping[str, float]
    duals: Mapping[str, float]
    fractional: tuple[str, ...]

    def __repr__(self) -> str:
        return f"bound {self.bound:.6g}, {len(self.fractional)} fractional of {len(self.programme.columns)} columns"


@dataclass(frozen=True, slots=True)
class RelaxationCut:
    """A row that the relaxation before it violates and all plans keep; `after` is the relaxation with it."""

    kind: str
    row: Row
    words: str
    violation: float
    after: Relaxation


def relaxation(problem: Any, below: float | None = None, rows: Sequence[Row] = ()) -> Relaxation:
    """Solve the linear relaxation of a problem's plain MILP by HiGHS.

    Args:
        problem: a problem with a plain model, or a `Programme`.
        below: see `gangplan.teach.milp`.
        rows: to be added, such as cuts.
    """
    programme = problem if isinstance(problem, Programme) else milp(problem, below)
    return _relaxed(replace(programme, rows=(*programme.rows, *rows)))


def _relaxed(programme: Programme) -> Relaxation:
    import highspy

    model = programme.exact(max((column.high for column in programme.columns if column.timed), default=1.0))
    unit = float(model.unit) / programme.unit
    solver = loaded(model)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return Relaxation(programme, float("inf"), float("inf"), {}, {}, ())
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise InstanceError("problem", f"HiGHS ends with {solver.modelStatusToString(solver.getModelStatus())}")
    solution = solver.getSolution()
    x = [by * (unit if c.timed else 1.0) for by, c in zip(solution.col_value, programme.columns, strict=True)]
    timed = (any(programme.columns[j].timed for j in row.terms) for row in programme.rows)
    y = [by * (1.0 if own else unit) for by, own in zip(solution.row_dual, timed, strict=True)]
    value, known = programme.value(x), [*zip(programme.columns, x, strict=True)]
    duals = {row.name: by for row, by in zip(programme.rows, y, strict=True) if abs(by) > 1e-9}
    fractional = tuple(c.name for c, by in known if c.whole and abs(by - round(by)) > _VIOLATED)
    values = {c.name: by for c, by in known if abs(by) > 1e-9}
    return Relaxation(programme, value * programme.unit, value, values, duals, fractional)


def symmetry(problem: Any) -> tuple[Row, ...]:
    """Return rows that name equal devices by what they hold: the i-th op, by work, is on one of the first i devices.

    (S) of docs/formulation.md, as the certified branch and bound and CP-SAT have it: of devices that are alike, and of
    a throughput problem that is no pipeline, or a step without levels of links.

    Raises:
        InstanceError: nothing like that is known of the problem.
    """
    programme, objective = milp(problem), problem.objective
    levels = getattr(problem.cluster.topology, "levels", ()) if objective == "step" else ()
    if objective not in ("throughput", "step") or getattr(problem, "variant", "") == "contiguous" or len(levels) > 1:
        raise InstanceError("problem", "has no symmetry that this breaks: free and convex throughput, and step, have")
    names, of = Names(problem), classes_of(problem)
    column = {c.name: j for j, c in enumerate(programme.columns)}
    op, device = (items(problem)[axis] for axis in ("op", "device"))
    weight = [max((p for _, p, _ in options), default=Fraction(0)) for options in of.options]
    rows = []
    for g, d in apart(weight, problem.cluster.type_of.tolist()):
        v = of.of.index(g)
        rows.append(Row(names.unique("S", (op(v), device(d))), None, 0.0, {column[f"x[{op(v)},{device(d)}]"]: 1.0}))
    return tuple(rows)


def cuts(problem: Any, below: float | None = None, most: int = 50) -> Iterator[RelaxationCut]:
    """Add violated cuts to the relaxation, the most violated first, and solve it again after each.

    A row sum of a_j x_j <= b of binaries is a knapsack, also where b is a load Z, which is at most `below`. A
    *cover* is a set C that does not fit; at most |C| - 1 of it are chosen, and of it with all columns that are no
    smaller than its largest (extended cover; Balas 1975). Of two columns it is a *clique*: of all these at most one.

    Args:
        below: see `gangplan.teach.milp`; cuts keep all plans of at most that.
        most: number of cuts.
    """
    programme = problem if isinstance(problem, Programme) else milp(problem, below)
    now, added = _relaxed(programme), 0
    programme = replace(programme, columns=_fixed(programme))
    seen: set[frozenset[int]] = set()
    while added < most and now.values:
        point = [now.values.get(c.name, 0.0) for c in now.programme.columns]
        found = [cut for cut in _covers(programme, point) if cut[0] not in seen]
        if not found:
            return
        support, size, row, violation = max(found, key=lambda cut: (cut[3], sorted(cut[0])))
        seen.add(support)
        added += 1
        kind = "clique" if size == 2 else "cover"
        names = " + ".join(programme.columns[j].name for j in sorted(support))
        cut = Row(f"{kind}[{added}]", None, float(size - 1), dict.fromkeys(sorted(support), 1.0))
        now = _relaxed(replace(now.programme, rows=(*now.programme.rows, cut)))
        yield RelaxationCut(kind, cut, f"{names} <= {size - 1}, for {row.name}", violation, now)


def _covers(programme: Programme, point: Sequence[float]) -> Iterator[tuple[frozenset[int], int, Row, float]]:
    """Yield (columns, size of the cover, row, violation) of each knapsack row's cover that the point violates.

    Separation is the usual greedy: columns by (1 - x_j) / a_j until they do not fit, then those taken away again that
    the others do not fit without.
    """
    for row in programme.rows:
        weight, room = _knapsack(programme, row)
        inside = [*weight]
        if sum(weight[j] for j in inside) <= room * (1 + _VIOLATED):
            continue
        cover, total = list[int](), 0.0
        for j in sorted(inside, key=lambda j: ((1 - point[j]) / weight[j], j)):
            cover.append(j)
            total += weight[j]
            if total > room * (1 + _VIOLATED):
                break
        for j in sorted(cover, key=lambda j: (point[j], -j)):
            if total - weight[j] > room * (1 + _VIOLATED) and len(cover) > 1:
                cover.remove(j)
                total -= weight[j]
        largest = max(weight[j] for j in cover)
        support = frozenset(cover) | {j for j in inside if weight[j] >= largest}
        violation = sum(point[j] for j in support) - (len(cover) - 1)
        if violation > _VIOLATED * len(cover):
            yield support, len(cover), row, violation


def _fixed(programme: Programme) -> tuple[Column, ...]:
    """Return the columns, those fixed that a row alone fixes."""
    columns = [*programme.columns]
    for row in programme.rows:
        if len(row.terms) == 1 and row.least == row.most:
            ((j, a),) = row.terms.items()
            at = (row.most or 0.0) / a
            columns[j] = replace(columns[j], low=at, high=at)
    return tuple(columns)


def _knapsack(programme: Programme, row: Row) -> tuple[dict[int, float], float]:
    """Return weights and room of a row as <=, with what is no binary at the end that gives the most room."""
    sign = 1.0 if row.most is not None else -1.0
    side = row.most if row.most is not None else row.least
    room, weight = sign * (side or 0.0), dict[int, float]()
    for j, a in row.terms.items():
        column, by = programme.columns[j], sign * a
        if column.whole and (column.low, column.high) == (0, 1) and by > 0:
            weight[j] = by
        else:
            room -= min(by * column.low, by * column.high)
    return weight, room
