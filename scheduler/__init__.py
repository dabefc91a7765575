"""Online: `Scheduler` is told what happens on a cluster, and says who starts where."""

from gangplan.solvers.placement.online.evolved import Evolved
from gangplan.solvers.placement.online.patient import Patient

from .decision import Considered, Decision, Explanation, Start, Stop, Stopping, WaitingJob
from .explaining.explain import RunsNow
from .moving.mending import Mend
from .policies.policy import Proposes, Ranks, View
from .queueing.request import Terms
from .scheduler import Scheduler
from .settings import Limit, Quota, Sharing
from .starting.calendar import Window

__all__ = [
    "Considered",
    "Decision",
    "Evolved",
    "Explanation",
    "Limit",
    "Mend",
    "Patient",
    "Proposes",
    "Quota",
    "Ranks",
    "RunsNow",
    "Scheduler",
    "Sharing",
    "Start",
    "Stop",
    "Stopping",
    "Terms",
    "View",
    "WaitingJob",
    "Window",
]
