"""Numbers for readers: a prefix that suits the size, and the unit."""

from __future__ import annotations

from math import isfinite

from gangplan.instances import GraphProblem, TreeTopology

PREFIXES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}
SLOWEST_LINK = 1e3
"""Bytes/s. Files that state transfers as times, in a unit they do not name, are kept as bytes over a link of 1."""


def time_unit(problem: GraphProblem) -> str:
    """Return ``s``, or the empty string where the file's times are in a unit of its own (the NeurIPS 2020 inputs)."""
    topology = problem.cluster.topology
    return "" if isinstance(topology, TreeTopology) and topology.slowest_link()[0] <= SLOWEST_LINK else "s"


def scale(largest: float, unit: str) -> tuple[float, str]:
    """Return (factor, prefixed unit) to show numbers up to `largest` by; divide by the factor."""
    steps = PREFIXES.get(unit)
    if steps is None:
        return 1.0, unit
    if largest <= 0:
        return 1.0, unit
    return next((step for step in steps if largest >= step[0] * 0.9995), steps[-1])


def quantity(value: float | None, unit: str, digits: int = 4) -> str:
    """Return `value` with `digits` significant digits and its unit; a dash for None, ``unlimited`` for infinity."""
    if value is None:
        return "-"
    if not isfinite(value):
        return "unlimited"
    factor, name = scale(value, unit)
    return f"{value / factor:.{digits}g} {name}".rstrip()


def percent(gap: float | None) -> str:
    """Return a relative gap in percent; a dash for None."""
    if gap is None:
        return "-"
    return f"{gap:.4%}" if gap >= 5e-7 else "0%"


def words(problem: GraphProblem) -> str:
    """Return the kind of a problem in words: its objective and what sets it apart among its kind."""
    contention = ", with contention" if getattr(problem, "contention", False) else ""
    return f"{problem.objective}{', ' if problem.variant else ''}{problem.variant}{contention}"
