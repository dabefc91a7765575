"""Online: `Scheduler` is told what happens on a cluster, and says who starts where."""

from .decision import Candidate, Decision, Explanation, Start, Stop
from .policy import Proposes, Ranks, View
from .scheduler import Scheduler

__all__ = ["Candidate", "Decision", "Explanation", "Proposes", "Ranks", "Scheduler", "Start", "Stop", "View"]
