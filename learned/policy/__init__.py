"""What all learned policies share: weights with their cards, configuration files, recipes, and their contract."""

from .check import Case, LearnedPolicy, check_policy
from .recipe import RECIPES, Recipe, Trained, recipe, train_policy
from .settings import read_config
from .weights import Card, find, load, read_card, save, shipped

__all__ = [
    "RECIPES",
    "Card",
    "Case",
    "LearnedPolicy",
    "Recipe",
    "Trained",
    "check_policy",
    "find",
    "load",
    "read_card",
    "read_config",
    "recipe",
    "save",
    "shipped",
    "train_policy",
]
