"""HiGHS, silent: 1.16 greets on standard output as soon as a solver is made, before it can be told to be quiet."""

from __future__ import annotations

import highspy

_enable = highspy.Highs.enableCallbacks


def _silently(solver: highspy.Highs) -> None:
    solver.silent()
    _enable(solver)  # type: ignore[no-untyped-call]
    solver.silent(False)


highspy.Highs.enableCallbacks = _silently  # type: ignore[method-assign]  # PuLP makes solvers too


def new_highs() -> highspy.Highs:
    """Return a solver."""
    return highspy.Highs()
