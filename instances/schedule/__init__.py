"""The schedule problem: which jobs run, on how many GPUs, from when on and where."""

from typing import TYPE_CHECKING

from ..lazy import exported

if TYPE_CHECKING:
    from .capacity import Capacity, NodePool, Pool
    from .job import MoldableJob, accepted_within
    from .problem import GOALS, SchedulePlan, ScheduleProblem
else:
    __getattr__ = exported(
        __name__,
        {
            ".capacity": "Capacity NodePool Pool",
            ".job": "MoldableJob accepted_within",
            ".problem": "GOALS SchedulePlan ScheduleProblem",
        },
    )

__all__ = [
    "GOALS",
    "Capacity",
    "MoldableJob",
    "NodePool",
    "Pool",
    "SchedulePlan",
    "ScheduleProblem",
    "accepted_within",
]
