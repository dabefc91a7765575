"""What the verifier returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray

TOLERANCE = 1e-9
"""Relative slack on sums of floats, which may be taken in another order."""
_PLACES = 4
"""Units in the last place that a time on a clock may be off by: it is rounded, and so is what it is the sum of."""


def time_slack(seconds: Any, at: Any, places: int = _PLACES) -> Any:
    """Return what a time may be off by: a share of `seconds`, a duration, and some last places of the clock at `at`.

    It is never a share of `at` itself, since a clock may start anywhere: Unix times are as good as others.
    """
    return TOLERANCE * seconds + places * np.spacing(np.abs(at))


def verdict_words(verdict: Any) -> str:
    """Return what a verdict says in a line, or a line for each of the first violations."""
    name, wrong = type(verdict).__name__, verdict.violations
    if not wrong:
        return f"{name}(feasible, objective {verdict.objective:.4g}{' s' if name == 'Verdict' else ''})"
    more = [f"... and {len(wrong) - 5} more"] if len(wrong) > 5 else []
    return "\n  ".join([f"{name}(infeasible, {len(wrong)} violations):", *wrong[:5], *more])


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What the verifier found.

    Attributes:
        violations: every violated constraint in plain words; empty if the plan is feasible.
        objective: the recomputed objective in seconds, `None` if the plan is infeasible.
        load: seconds each device is busy, float64 (n_devices,): compute plus the transfers it takes part in.
        transfer: the part of `load` spent on transfers, float64 (n_devices,).
        memory: bytes used on each device, float64 (n_devices,).
    """

    violations: tuple[str, ...]
    objective: float | None
    load: FloatArray
    transfer: FloatArray
    memory: FloatArray

    def __repr__(self) -> str:
        return verdict_words(self)

    @property
    def ok(self) -> bool:
        """Whether the plan is feasible."""
        return not self.violations

    @classmethod
    def nothing(cls, violations: Iterable[str], devices: int) -> Verdict:
        """Return the verdict on a plan that does not fit its problem at all."""
        zero = np.zeros(devices)
        return cls(tuple(violations), None, zero, zero, zero)
