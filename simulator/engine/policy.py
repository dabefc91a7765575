"""What a policy is: up to six decisions, each a method; a scheduler is put together from objects that have some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray

from .rows import Long, Rows
from .view import View

DISCIPLINES = ("head", "overtake", "easy", "conservative")


class Select(Protocol):
    """Says who is first."""

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Return a number for each of `jobs`, the least is first; ties go by submit time, then by place in the trace.

        `jobs` are those that wait and, in a preemptive mode, those that run. An attribute ``steady = True`` promises
        that the number of a job stays as it is while the job waits, whatever else happens: then it is asked for only
        once. By default the numbers are submit times.
        """
        ...


class Admit(Protocol):
    """Says who may enter."""

    def admit(self, job: int, view: View) -> bool:
        """Return whether an arriving job joins the queue; it is rejected for good otherwise. By default all join."""
        ...


class Degree(Protocol):
    """Says on how many GPUs."""

    def degree(self, job: int, view: View) -> int:
        """Return the degree, one of its menu, at which a waiting job is to start now. By default what it asked for."""
        ...


class Place(Protocol):
    """Says where."""

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Return where a job starts now, or None if it does not. By default `view.find(job, degree)`."""
        ...


class Preempt(Protocol):
    """Says who is to stop, in a preemptive mode."""

    def preempt(self, view: View) -> Long:
        """Return running jobs that stop now and join the queue, before anyone starts.

        By default a waiting job that does not fit stops running ones that `select` puts behind it, the last ones
        first and no more than it needs. A policy with a `preempt` of its own stops those that it names and no others.
        """
        ...


class Wake(Protocol):
    """Says when to look again."""

    def wake(self, view: View) -> float:
        """Return when to decide again though nobody arrives or ends, seconds; by default never."""
        ...


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Decisions put together.

    Attributes:
        parts: each decision is made by the first part that has the method.
        discipline: ``head`` (who is first blocks the others), ``overtake`` (whoever fits starts, in order), ``easy``
            (whoever fits starts unless that delays the first) or ``conservative`` (unless that delays any before it).
        consolidate: a job no larger than a node runs on one node, that with the fewest free GPUs that fits; a larger
            one on whole free nodes. Otherwise on any free GPUs.
        preemptive: whether running jobs may be stopped; by default if a part says so by an attribute ``preemptive``.
        shared: whether GPUs may be shared; by default if a part says so by an attribute ``shared``.

    Raises:
        InstanceError: if these do not go together.
    """

    parts: tuple[Any, ...]
    discipline: str = "head"
    consolidate: bool = False
    preemptive: bool | None = None
    shared: bool | None = None

    def __post_init__(self) -> None:
        parts = self.parts if isinstance(self.parts, tuple) else (self.parts,)
        object.__setattr__(self, "parts", parts)
        for i, part in enumerate(parts):
            if not any(hasattr(part, name) for name in DECISIONS):
                raise InstanceError(f"parts[{i}]", f"{part!r} has none of {', '.join(DECISIONS)}")
        if self.discipline not in DISCIPLINES:
            raise InstanceError("discipline", f"{self.discipline!r} is not one of {', '.join(DISCIPLINES)}")
        for field in ("preemptive", "shared"):
            given = getattr(self, field)
            asked = any(getattr(part, field, False) for part in parts)
            object.__setattr__(self, field, asked if given is None else given)
        if not self.preemptive and self.part("preempt"):
            raise InstanceError("preemptive", "is false, but a policy stops jobs")
        if self.discipline in ("easy", "conservative"):
            if self.preemptive or self.shared:
                words = "holds reservations, which goes neither with preemption nor with shared GPUs"
                raise InstanceError("discipline", f"{self.discipline!r} {words}")
            if self.part("place") or self.part("degree"):
                words = "holds reservations, so it chooses places and degrees itself"
                raise InstanceError("discipline", f"{self.discipline!r} {words}")

    def part(self, decision: str) -> Any:
        """Return the part that makes a decision, None if it is made by default."""
        return next((part for part in self.parts if hasattr(part, decision)), None)


DECISIONS = {"select": Select, "admit": Admit, "degree": Degree, "place": Place, "preempt": Preempt, "wake": Wake}
"""The protocols by the name of their method."""
