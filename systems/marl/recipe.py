"""How MARL's policy is trained, loaded and judged."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage
from gangplan.simulator.ground import Maker

from ..interference.ground import Agents
from .settings import NAME, Settings

if TYPE_CHECKING:
    from gangplan.learned.training.checkpoint import Tensors


def stages(settings: Settings, seed: int) -> list[Stage]:
    """Return imitation, if there is to be any, and PPO."""
    fitted: list[Any] = []

    def models() -> Any:
        from .rewards import reward_models

        fitted[:] = fitted or [reward_models(settings, seed)]  # the same again in a run that is resumed
        return fitted[0]

    def imitate(turn: int, before: Tensors | None) -> Any:
        from .learners import imitation
        from .network import Actor

        return imitation(start(lambda: Actor(settings), seed, before), settings, models(), seed, turn)

    def improve(before: Tensors | None) -> Any:
        from .learners import Agents
        from .network import Actor, Critic

        critic = start(lambda: Critic(settings), seed + 1, None)
        return Agents(start(lambda: Actor(settings), seed, before), critic, settings, models(), seed)

    updates = settings.imitation_updates
    rounds = [(f"imitation-{turn}", partial(imitate, turn)) for turn in range(settings.rounds)]
    made = [Stage(name, make, updates, max(updates // 4, 1)) for name, make in rounds]
    made.append(Stage("rl", improve, settings.rl_updates, settings.validate_every))
    return [x for x in made if x.updates]


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import MarlPolicy

    return MarlPolicy.load(path)


def judge(policy: Any, *, case: str = "") -> tuple[list[Agents], Maker, tuple[str, ...]]:
    """Compare a policy with blind agents and single schedulers in the true cluster.

    Args:
        policy: the learned one.
        case: of `CENTRES`, by default the first that it was trained on, with 64 servers.
    """
    from ..interference.cases import CENTRES

    name = case or policy.settings.cases[0]
    rivals = ("lif", "tetris", "lb", "agents-lif", "agents-random", "market", "lif-near")
    return [Agents(name, make=CENTRES[name])], lambda drawn, seed: policy, rivals


RECIPE = Recipe(
    name=NAME,
    about="where agents that own racks place tasks, and to whom they pass jobs on",
    config=Settings,
    stages=stages,
    load=load,
    judge=judge,
    data="small data centres of gangplan.systems.interference, under speeds predicted by models fitted to logs",
)
