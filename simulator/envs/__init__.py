"""Environments for learning: the engine stops at a decision and hands it out."""

try:
    import gymnasium
    import pettingzoo  # noqa: F401  the environment of many schedulers needs it
except ImportError as error:
    raise ImportError("environments need Gymnasium and PettingZoo: pip install 'gangplan[envs]'") from error

from .base import ClusterEnv
from .baselines import BASELINES
from .cases import Case, Synthetic
from .degree import DegreeEnv
from .many import ManyEnv
from .place import PlaceEnv
from .rewards import Accepted, CompletionTime, Progress, Reward, Slowdown
from .select import SelectEnv

__all__ = [
    "BASELINES",
    "Accepted",
    "Case",
    "ClusterEnv",
    "CompletionTime",
    "DegreeEnv",
    "ManyEnv",
    "PlaceEnv",
    "Progress",
    "Reward",
    "SelectEnv",
    "Slowdown",
    "Synthetic",
]

for _name in ("Select", "Degree", "Place"):
    gymnasium.register(f"gangplan/{_name}-v0", entry_point=f"gangplan.simulator.envs:{_name}Env")
