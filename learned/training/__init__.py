"""What trains any policy: recipes, the loop with its logs and checkpoints, losses over ragged sets of actions, PPO."""

from ..policy.weights import Tensors
from .checkpoint import read_checkpoint
from .learner import Learner
from .loop import StageReport, TrainingReport, TrainingStage, train, train_stages

__all__ = [
    "Learner",
    "StageReport",
    "Tensors",
    "TrainingReport",
    "TrainingStage",
    "read_checkpoint",
    "train",
    "train_stages",
]
