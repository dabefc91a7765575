"""The schedule problem: which jobs run, on how many GPUs, from when on and where."""

from .capacity import Capacity, NodePool, Pool
from .job import MoldableJob, accepted_within
from .problem import GOALS, SchedulePlan, ScheduleProblem

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
