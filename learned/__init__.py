"""What is learned from data: policies, what trains them and their contract; how fast jobs run together."""

from .policy.check import Case, check_policy

__all__ = ["Case", "check_policy"]
