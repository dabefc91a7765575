"""Online: `Scheduler` is told what happens on a cluster, and says who starts where."""

from gangplan.solvers.placement.online.evolved import Evolved
from gangplan.solvers.placement.online.patient import Patient

from .calendar import Window
from .decision import Decision
from .explain import Candidate, Explanation, WaitingJob
from .mending import Mend
from .notices import Stopping
from .policy import Proposes, Ranks, View
from .runs import RunsNow
from .scheduler import Scheduler
from .sharing import Limit, Quota, Sharing
from .starts import Start
from .stops import Stop
from .terms import Terms

__all__ = [
    "Candidate",
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
