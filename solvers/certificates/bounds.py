"""Certificates of the bounds that cost little: duals of small linear programmes, paths."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from gangplan.instances.arrays import row_sums
from gangplan.instances.certificates.classes import classes_of
from gangplan.instances.certificates.document import Certificate
from gangplan.instances.certificates.linear import LinearModel
from gangplan.instances.certificates.loads import SharesCertificate
from gangplan.instances.certificates.paths import PathCertificate
from gangplan.instances.certificates.under_way import UnderWayCertificate
from gangplan.instances.certificates.windows import WindowsCertificate, effort
from gangplan.instances.graph import grouped, heaviest_path

BELOW = Fraction(1, 2 * 10**6)
"""How far thresholds of searches are below the plan, as a share of what is above zero: half of `OPTIMAL_GAP`."""
LONGEST = 60.0
"""Seconds that a search may take at most, and so whoever checks the certificate."""
_FINE = 2**40
"""Weights are rounded to this part of the largest."""
_UNDER = Fraction(1, 10**6)
"""How far a threshold is below what floats refute, as a share."""


def simple(problem: Any) -> Iterator[Certificate]:
    """Yield certificates of a problem; each holds, the best of them counts."""
    makers = {
        "throughput": (_shares,),
        "latency": (_shares, _path),
        "step": (_path, _shares),
        "stages": (_shares, _under_way),
        "pipeline": (lambda problem: WindowsCertificate(effort(problem)),),
    }
    for make in makers.get(problem.objective, ()):
        found = make(problem)
        if found is not None:
            yield found


def rounded(values: Any) -> tuple[Fraction, ...]:
    """Return weights as rationals, none below 0, fine in comparison with the largest."""
    values = np.maximum(np.asarray(values, dtype=float), 0.0)
    _, exponent = np.frexp(values.max(initial=0.0))
    unit = Fraction(2) ** int(exponent) / _FINE
    return tuple(int(Fraction(x) / unit) * unit for x in values.tolist())


def _shares(problem: Any) -> SharesCertificate | None:
    """Solve the linear programme over shares of classes, and take its duals."""
    from .branch import loaded  # HiGHS takes a tenth of a second to import

    classes = classes_of(problem)
    types = [t for t, count in enumerate(classes.count) if count]
    if not types or not all(classes.options):
        return None
    unit = max(takes for options in classes.options for _, takes, _ in options) or Fraction(1)
    model = LinearModel(unit)
    z = model.column(2**40, cost=1)
    loads: dict[int, dict[int, Fraction | int]] = {t: {z: classes.count[t] or 0} for t in types}
    sizes: dict[int, dict[int, Fraction | int]] = {t: {} for t in types if classes.capacity[t] not in (0, inf)}
    for options in classes.options:
        columns = {}
        for t, takes, needs in options:
            columns[model.column(1)] = t, takes, needs
        model.row(dict.fromkeys(columns, 1), 1)
        for j, (t, takes, needs) in columns.items():
            if t in loads:
                loads[t][j] = -takes / unit
            if t in sizes:
                sizes[t][j] = needs / Fraction(classes.capacity[t])
    first = len(model.rows)
    for t in types:
        model.row(loads[t], 0)
    for t, row in sizes.items():
        model.row(row, most=classes.count[t] or 0)
    solver = loaded(model)
    solver.run()
    duals = solver.getSolution().row_dual[first:]
    if len(duals) < len(types):
        return None
    seconds, room = np.zeros(len(classes.count)), np.zeros(len(classes.count))
    seconds[types] = duals[: len(types)]
    for t, dual in zip(sizes, duals[len(types) :], strict=True):
        room[t] = -dual * float(unit / Fraction(classes.capacity[t]))
    return SharesCertificate(rounded(seconds), rounded(room))


def _path(problem: Any) -> PathCertificate:
    """Return the longest path of fastest times."""
    return PathCertificate(longest(problem, problem.time()[problem.cluster.counts() > 0].min(axis=0)))


def longest(problem: Any, weight: Any) -> tuple[int, ...]:
    """Return the ops of a path of the greatest total weight."""
    graph = problem.graph
    before = grouped(zip(graph.target.tolist(), graph.source.tolist(), strict=True), len(weight))
    return heaviest_path(graph.topological_order().tolist(), before, weight.tolist())


def _under_way(problem: Any) -> UnderWayCertificate | None:
    """Price classes of ops by work and memory, where that refutes more than sharing all work does."""
    from ..partition.stages.under_way import Amounts, refuted

    of = np.array(classes_of(problem).of)
    amounts = Amounts(problem, *(row_sums(of, x, of.max() + 1) for x in (problem.seconds(), *problem.need())))
    degree = problem.options().degree[:, None]
    least = float((amounts.seconds * degree).min(axis=0).sum()) / problem.cluster.n_devices
    found = refuted(amounts, least)
    if found is None:
        return None
    samples = tuple(int(v) for v in found.counts)
    if found.bound == inf:
        return UnderWayCertificate(Fraction(0), rounded(found.price), (Fraction(0),), samples)
    weights = np.unique(np.concatenate(found.weights))
    return UnderWayCertificate(Fraction(found.bound) * (1 - _UNDER), rounded(found.price), rounded(weights), samples)
