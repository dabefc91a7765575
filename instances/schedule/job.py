"""A moldable job: it runs as a gang from start to end, on one of several numbers of GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..arrays import require_number, require_text
from ..errors import InstanceError


@dataclass(frozen=True, slots=True)
class MoldableJob:
    """A job with a menu of degrees; which is used is chosen before it starts and kept to its end.

    Attributes:
        name: unique in a problem.
        degrees: how many GPUs it may hold, ascending; one number if it is rigid.
        durations: seconds it runs with each of them.
        release: seconds, before which it cannot start.
        weight: of its completion or of its being done.
        deadline: seconds by which it is complete if it runs at all; `None` if there is no such time.
        value: what leaving it out costs, in the unit of the goal; `None` if it must run.
    """

    name: str
    degrees: tuple[int, ...]
    durations: tuple[float, ...]
    release: float = 0.0
    weight: float = 1.0
    deadline: float | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        require_text(self.name, "name")
        for field in ("degrees", "durations"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        if not self.degrees:
            raise InstanceError("degrees", "names no number of GPUs")
        for i, degree in enumerate(self.degrees):
            require_number(degree, f"degrees[{i}]", positive=True, whole=True)
            if i and degree <= self.degrees[i - 1]:
                raise InstanceError(f"degrees[{i}]", f"{degree!r} does not ascend")
        if len(self.durations) != len(self.degrees):
            raise InstanceError("durations", f"has {len(self.durations)} entries for {len(self.degrees)} degrees")
        for i, seconds in enumerate(self.durations):
            require_number(seconds, f"durations[{i}]")
        for field in ("release", "weight"):
            require_number(getattr(self, field), field)
        require_number(self.deadline, "deadline", optional=True)
        require_number(self.value, "value", optional=True)


def accepted_within(job: MoldableJob, fraction: float, sequential: float | None = None) -> MoldableJob:
    """Return `job` with the deadline of PAC-ML's maximum acceptable JCT fraction (arXiv 2301.13799, section 3).

    Args:
        job: any job.
        fraction: of the sequential duration that its completion time, counted from its release, may be.
        sequential: seconds it runs on one GPU; by default its duration at degree 1.

    Raises:
        InstanceError: if the sequential duration is neither given nor on the menu.
    """
    require_number(fraction, "fraction", positive=True)
    if sequential is None:
        if job.degrees[0] != 1:
            raise InstanceError("sequential", f"is not given, and job {job.name} does not run on one GPU")
        sequential = job.durations[0]
    require_number(sequential, "sequential")
    return replace(job, deadline=job.release + fraction * sequential)
