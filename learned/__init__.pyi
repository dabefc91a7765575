"""What is learned from data: policies, what trains them and their contract; how fast jobs run together."""

from .policy.check import Case as Case
from .policy.check import check_policy as check_policy
