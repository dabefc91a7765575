"""Labels: near-optimal actions with their values from exact solves, to learn from; see docs/labels.md."""

from .actions import Labels, State
from .configuration import PROBLEMS, Configuration, up_to
from .engine import Engine
from .files import Collected, Labelled, collect, read_labels
from .instance import label_instance, label_state

__all__ = [
    "PROBLEMS",
    "Collected",
    "Configuration",
    "Engine",
    "Labelled",
    "Labels",
    "State",
    "collect",
    "label_instance",
    "label_state",
    "read_labels",
    "up_to",
]
