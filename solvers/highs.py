"""HiGHS, silent, and with as many threads as each solver wants.

1.16 greets on standard output as soon as a solver is made, before it can be told to be quiet; and what has solved with
another number of threads before leaves a thread of the caller's with a scheduler that refuses the next solver.
"""

from __future__ import annotations

from typing import Any

import highspy

_enable = highspy.Highs.enableCallbacks


def _silently(solver: highspy.Highs) -> None:
    solver.silent()
    _enable(solver)  # type: ignore[no-untyped-call]
    solver.silent(False)
    solver.resetThreadScheduler(True)


highspy.Highs.enableCallbacks = _silently  # type: ignore[method-assign]  # PuLP makes solvers too


def new_highs(**options: Any) -> highspy.Highs:
    """Return a solver with options of HiGHS."""
    solver = highspy.Highs()
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver
