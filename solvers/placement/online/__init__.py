"""Online placement: tasks or gangs arrive one by one, and each gets its nodes and GPUs at once; a file a policy."""

from ..policies import GANG_POLICIES
from .fgd import TaskMix
from .placer import NodeAllocation, Placer
from .policies import TASK_POLICIES, make_policy
from .policy import Choice, TaskPolicy
from .state import FreeState

__all__ = [
    "GANG_POLICIES",
    "TASK_POLICIES",
    "Choice",
    "FreeState",
    "NodeAllocation",
    "Placer",
    "TaskMix",
    "TaskPolicy",
    "make_policy",
]
