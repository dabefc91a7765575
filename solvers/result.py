"""What a solve returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ulp
from typing import Any

OPTIMAL_GAP = 1e-6
"""A plan within this relative gap of the bound is called optimal: integer solvers round times, profiles do more."""

_PLACES = 4
"""Last places of sums of times that are no gap."""


class Status(StrEnum):
    """What is known about the answer."""

    OPTIMAL = "OPTIMAL"
    FEASIBLE = "FEASIBLE"
    INFEASIBLE = "INFEASIBLE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A new best plan.

    Attributes:
        seconds: since the call.
        objective: as the verifier recomputed it, seconds.
        bound: the best bound known at that moment, `None` if none.
        by: the method that found it.
    """

    seconds: float
    objective: float
    bound: float | None
    by: str


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The answer and how far to trust it.

    Attributes:
        status: OPTIMAL (gap at most 1e-6), FEASIBLE, INFEASIBLE (proved) or UNKNOWN (no plan, no proof).
        stop_reason: ``proved``, ``gap``, ``time limit`` (methods that were left out for want of time included),
            ``interrupted``, ``callback`` or ``methods exhausted``.
        plan: the best plan found, verified; `None` if none.
        objective: its value in seconds; `None` without a plan.
        bound: no plan can be better than this, seconds; kept without a plan too; `None` if nothing is proved.
        gap: (objective - bound) / (objective - zero); 0 if they are equal, `None` if either is missing.
        trace: every incumbent in the order found.
        phases: seconds spent in each phase; they add up to `wall_seconds`.
        wall_seconds: from the call to the return.
        method, seed, workers, versions: what made it, enough to make it again.
        notes: what a reader of the result should know, e.g. why a method was left out.
        conflict: if infeasible, requirements that contradict one another, none of which can be left out, in words.
        zero: what any plan costs at least because of where the clock of a schedule starts, see `clock_cost`; else 0.
    """

    status: Status
    stop_reason: str
    plan: Any
    objective: float | None
    bound: float | None
    trace: tuple[Incumbent, ...]
    phases: Mapping[str, float]
    wall_seconds: float
    method: str
    seed: int
    workers: int
    versions: Mapping[str, str]
    notes: tuple[str, ...] = ()
    conflict: tuple[str, ...] = ()
    zero: float = 0.0

    def __repr__(self) -> str:
        """Return status, numbers, method and plan, one a line; times in seconds."""
        unit = " s" if hasattr(self.plan, "ops") else ""
        known = {"objective": self.objective, "bound": self.bound}
        numbers = [f"{name} {value:.4g}{unit}" for name, value in known.items() if value is not None]
        gap = [] if self.gap is None else [f"gap {self.gap:.3g}" if self.gap else "gap 0"]
        lines = [
            f"{self.status} after {self.wall_seconds:.3g} s: {self.stop_reason}",
            ", ".join([*numbers, *gap]) or "no plan and no bound",
            f"method {self.method}, seed {self.seed}, {self.workers} workers",
            *([] if self.plan is None else [repr(self.plan)]),
            *(f"conflict: {words}" for words in self.conflict),
            *([f"{len(self.notes)} notes"] if self.notes else []),
        ]
        return "\n".join(lines)

    @property
    def gap(self) -> float | None:
        """The relative gap, see `relative_gap`."""
        return relative_gap(self.objective, self.bound, self.zero)


def relative_gap(objective: float | None, bound: float | None, zero: float = 0.0) -> float | None:
    """Return (objective - bound) / (objective - zero), 0 if they are equal, `None` if either is missing."""
    if objective is None or bound is None:
        return None
    # sums in another order differ in the last digits: that is no gap
    close = 1e-12 * (bound - zero) + _PLACES * ulp(zero)
    return 0.0 if objective <= bound + close else (objective - bound) / (objective - min(zero, bound))
