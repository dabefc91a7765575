"""What all learned policies share: weights with their cards, configuration files, and their contract."""

from .check import Case, LearnedPolicy, check_policy
from .settings import read_config
from .weights import Card, find, load, read_card, save, shipped

__all__ = [
    "Card",
    "Case",
    "LearnedPolicy",
    "check_policy",
    "find",
    "load",
    "read_card",
    "read_config",
    "save",
    "shipped",
]
