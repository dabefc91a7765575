"""Environments for learning: the engine stops at a decision and hands it out."""

try:
    import gymnasium
    import pettingzoo  # noqa: F401  the environment of many schedulers needs it
except ImportError as error:
    from gangplan.instances.errors import extra

    raise ImportError(f"environments need Gymnasium and PettingZoo; {extra('envs')}") from error

from .episode import Case, Reward, Stretch, Synthetic, Throughput, completion_time, progress, slowdown
from .many import ManyEnv
from .single import ClusterEnv, PlaceEnv, SelectEnv
from .topdrl import topdrl

__all__ = [
    "Case",
    "ClusterEnv",
    "ManyEnv",
    "PlaceEnv",
    "Reward",
    "SelectEnv",
    "Stretch",
    "Synthetic",
    "Throughput",
    "completion_time",
    "progress",
    "slowdown",
    "topdrl",
]

for _name in ("Select", "Place"):
    gymnasium.register(f"gangplan/{_name}-v0", entry_point=f"gangplan.simulator.envs:{_name}Env")
gymnasium.register("gangplan/TopDRL-v0", entry_point="gangplan.simulator.envs:topdrl")
