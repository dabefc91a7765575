"""Environments for learning: the engine stops at a decision and hands it out."""

try:
    import gymnasium
except ImportError as error:
    from gangplan.instances.errors import extra

    raise ImportError(f"environments need Gymnasium and PettingZoo; {extra('envs')}") from error

from .episode import EpisodeCase, Reward, Stretch, Synthetic, Throughput, completion_time, progress, slowdown
from .single import ClusterEnv, PlaceEnv, SelectEnv

__all__ = [
    "ClusterEnv",
    "EpisodeCase",
    "PlaceEnv",
    "Reward",
    "SelectEnv",
    "Stretch",
    "Synthetic",
    "Throughput",
    "completion_time",
    "progress",
    "slowdown",
]

for _name in ("Select", "Place"):
    gymnasium.register(f"gangplan/{_name}-v0", entry_point=f"gangplan.simulator.envs:{_name}Env")
