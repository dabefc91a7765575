"""Online: `Scheduler` is told what happens on a cluster, and says who starts where."""

from gangplan.solvers.placement.online.patient import Patient

from .decision import Decision
from .explain import Candidate, Explanation, WaitingJob
from .policy import Proposes, Ranks, View
from .runs import RunsNow
from .scheduler import Scheduler
from .sharing import Limit, Quota, Sharing
from .starts import Start
from .stops import Stop

__all__ = [
    "Candidate",
    "Decision",
    "Explanation",
    "Limit",
    "Patient",
    "Proposes",
    "Quota",
    "Ranks",
    "RunsNow",
    "Scheduler",
    "Sharing",
    "Start",
    "Stop",
    "View",
    "WaitingJob",
]
