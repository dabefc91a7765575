"""Online: `Scheduler` is told what happens on a cluster, and says who starts where."""

from .explain import Candidate, Explanation, WaitingJob
from .policy import Proposes, Ranks, View
from .scheduler import Decision, Scheduler
from .starts import Start
from .stops import Stop

__all__ = [
    "Candidate",
    "Decision",
    "Explanation",
    "Proposes",
    "Ranks",
    "Scheduler",
    "Start",
    "Stop",
    "View",
    "WaitingJob",
]
