"""What trains any policy: recipes, the loop with its logs and checkpoints, losses over ragged sets of actions, PPO."""

from ..policy.weights import Tensors
from .checkpoint import read_checkpoint
from .learner import Learner
from .loop import TrainingReport, TrainingStage, train, train_stages

__all__ = [
    "Learner",
    "Tensors",
    "TrainingReport",
    "TrainingStage",
    "read_checkpoint",
    "train",
    "train_stages",
]
