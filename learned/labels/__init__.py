"""Labels: near-optimal actions with their values from exact solves, to learn from; see docs/labels.md."""

from gangplan.instances.generators.families import FAMILIES, SPLITS, make, seed_of

from .configuration import Configuration
from .engine import Engine
from .fill import Collected, collect
from .row import label_instance, label_state, space_of
from .shards import Labelled, read_labels
from .space import Action, State
from .values import Labels, up_to

__all__ = [
    "FAMILIES",
    "SPLITS",
    "Action",
    "Collected",
    "Configuration",
    "Engine",
    "Labelled",
    "Labels",
    "State",
    "collect",
    "label_instance",
    "label_state",
    "make",
    "read_labels",
    "seed_of",
    "space_of",
    "up_to",
]
