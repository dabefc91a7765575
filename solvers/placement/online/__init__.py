"""Online placement: tasks arrive one by one, and each gets a node and its GPUs at once; a file a policy."""

from .mix import Mix
from .policies import POLICIES, make_policy
from .policy import Choice, Policy
from .state import State

__all__ = ["POLICIES", "Choice", "Mix", "Policy", "State", "make_policy"]
