"""What a solve returns: plan, bound, how they came about, and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import ulp
from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default, as Python's own has from 3.13 on

    PlanT_co = TypeVar("PlanT_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    PlanT_co = TypeVar("PlanT_co", covariant=True)

PLACES = 8
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
    """

    seconds: float
    objective: float
    bound: float | None
    by: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A method's time in a solve, as planned, and what it took of it.

    Attributes:
        where, why: in a ``thread``, in a ``child`` process, ``beside`` them in another one, or ``alone`` in one.
        begin, end, ran: as planned, seconds since the call; seconds at work.
    """

    method: str
    where: str
    why: str
    begin: float
    end: float
    ran: float


@dataclass(frozen=True, slots=True, repr=False)
class Result(Generic[PlanT_co]):
    """The answer and how far to trust it.

    Attributes:
        status: OPTIMAL (gap at most 1e-6, but for the rounding of Unix time), FEASIBLE, INFEASIBLE or UNKNOWN (no plan,
            no claim that there is none).
        stop_reason: ``proved``, ``claimed`` (by one solver or argument alone, see `standing`), ``gap``, ``time limit``
            (methods that were left out for want of time included), ``interrupted``, ``callback`` or ``methods
            exhausted``.
        plan: the best plan found, verified; `None` if none.
        objective: its value in seconds; `None` without a plan.
        bound: no plan is better than this, seconds, says `bound_by`; kept without a plan too; `None` if nobody does.
        gap: (objective - bound) / (objective - zero); 0 if they are equal, `None` if either is missing.
        trace: every incumbent in the order found.
        phases: seconds spent in each phase; they add up to `wall_seconds`.
        wall_seconds: from the call to the return.
        method, seed, workers, versions: what made it, enough to make it again.
        turns, left_out: which methods ran, as they ended; why others did not run, or not to their end, by name.
        notes: what a reader of the result should know, e.g. why a method was left out.
        conflict: if infeasible, requirements that contradict one another, none of which can be left out, in words.
        zero: what any plan costs at least because of where the clock of a schedule starts, see `clock_cost`; else 0.
        certificate: of a bound, as JSON has it, if one was looked for and found; for `gangplan.verify_bound`.
        certified: what the checker says that it proves, a rational or `inf`; 0 without one, `None` if none was asked
            for and found.
        bound_by: what claims `bound`, or that there is no plan; empty if nothing does.
        witnesses: two that agree on OPTIMAL or INFEASIBLE and share no solver, no reduction and no cut; the last works
            on the textbook model; or ``zero``, for a plan that costs nothing. Empty if there are none.
    """

    status: Status
    stop_reason: str
    plan: PlanT_co | None
    objective: float | None
    bound: float | None
    trace: tuple[Incumbent, ...]
    phases: Mapping[str, float]
    wall_seconds: float
    method: str
    seed: int
    workers: int
    versions: Mapping[str, str]
    turns: tuple[Turn, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    conflict: tuple[str, ...] = ()
    zero: float = 0.0
    certificate: Any = None
    certified: Any = None
    bound_by: str = ""
    witnesses: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return status, numbers, method and plan, one a line; times in seconds."""
        unit = " s" if hasattr(self.plan, "ops") or hasattr(self.plan, "phase") else ""
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

    @property
    def standing(self) -> str:
        """The status, and if it is final the proof or whose word it is.

        ``OPTIMAL (certified)`` or ``(proved by cpsat and plain_milp)`` is a proof, ``(claimed by cpsat)`` none.
        """
        if self.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            return str(self.status)
        if self.certified is not None:
            from gangplan.instances.certificates import certifies

            if certifies(self.certified, self.objective, self.zero):
                return f"{self.status} (certified)"
        if self.witnesses:
            return f"{self.status} (proved by {' and '.join(self.witnesses)})"
        return f"{self.status} (claimed by {self.bound_by or self.method})"


def relative_gap(objective: float | None, bound: float | None, zero: float = 0.0) -> float | None:
    """Return (objective - bound) / (objective - zero), 0 if they are equal, `None` if either is missing."""
    if objective is None or bound is None:
        return None
    # sums in another order differ in the last digits: that is no gap
    close = 1e-12 * (bound - zero) + PLACES * ulp(zero)
    return 0.0 if objective <= bound + close else (objective - bound) / (objective - min(zero, bound))
