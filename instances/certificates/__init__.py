"""Certificates of bounds, and the checker that trusts nobody: rational arithmetic, and nothing of any solver."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any

from ..errors import InstanceError
from ..kinds import PROBLEMS
from ..lazy import exported
from .document import Certificate, read
from .exact import PLACES

if TYPE_CHECKING:
    from .document import ARGUMENTS as ARGUMENTS
    from .document import write as write
else:
    __getattr__ = exported(__name__, {".document": "ARGUMENTS write"})

GAP = Fraction(1, 10**6)
"""A plan within this relative gap of a checked bound is called optimal."""


def verify_bound(problem: Any, certificate: Any) -> Fraction | float:
    """Check a certificate against a problem and return what it proves.

    Args:
        problem: any problem.
        certificate: of one of its bounds: a `Certificate`, or the JSON object that one is written as.

    Returns:
        A value that no plan which `verify` accepts is below, in the unit of the objective; `math.inf` if the
        certificate proves that there is no plan.

    Raises:
        InstanceError: naming what of the certificate does not hold.
    """
    objective: Any = getattr(problem, "objective", None)
    if objective not in PROBLEMS or type(problem) is not PROBLEMS[objective]:
        raise InstanceError("problem", f"{type(problem).__name__} is no problem that the checker knows")
    found = certificate if isinstance(certificate, Certificate) else read(certificate)
    return found.proved(problem)


def certifies(bound: Fraction | float, objective: float | None, zero: float = 0.0) -> bool:
    """Return whether a checked bound proves a plan of `objective` optimal, or without a plan that there is none.

    Gaps are shares of what the objective is above `zero`, see `gangplan.Result.zero`; rounding on that clock is no gap.
    """
    if objective is None or bound == inf:
        return objective is None and bound == inf
    value, least = Fraction(objective), Fraction(zero)
    return value - Fraction(bound) <= GAP * max(value - least, Fraction(0)) + PLACES * least
