"""Environments for learning: the engine stops at a decision and hands it out."""

try:
    import gymnasium
    import pettingzoo as _pettingzoo  # noqa: F401  the environment of many schedulers needs it
except ImportError as error:
    raise ImportError("environments need Gymnasium and PettingZoo: pip install 'gangplan[envs]'") from error

from .base import ClusterEnv
from .cases import Case, Synthetic
from .rewards import Accepted, CompletionTime, Progress, Reward, Slowdown
from .select import SelectEnv

__all__ = [
    "Accepted",
    "Case",
    "ClusterEnv",
    "CompletionTime",
    "Progress",
    "Reward",
    "SelectEnv",
    "Slowdown",
    "Synthetic",
]

for _name in ("Select",):
    gymnasium.register(f"gangplan/{_name}-v0", entry_point=f"gangplan.simulator.envs:{_name}Env")
