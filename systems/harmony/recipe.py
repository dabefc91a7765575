"""How Harmony's policy is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage
from gangplan.simulator.ground import Maker

from ..interference.ground import Interference
from .settings import NAME, Settings

if TYPE_CHECKING:
    from gangplan.learned.training.checkpoint import Tensors


def stages(settings: Settings, seed: int) -> list[Stage]:
    """Return imitation, if there is to be any, and the actor and the critic."""
    fitted: list[Any] = []

    def model() -> Any:
        from .rewards import reward_model

        fitted[:] = fitted or [reward_model(settings, seed)]  # the same again in a run that is resumed
        return fitted[0]

    def imitate(before: Tensors | None) -> Any:
        from .learners import imitation
        from .network import policy_network

        return imitation(start(lambda: policy_network(settings), seed, before), settings, model(), seed)

    def improve(before: Tensors | None) -> Any:
        from .learners import ActorCritic
        from .network import FeedForward, policy_network

        critic = start(lambda: FeedForward(settings, 1), seed + 1, None)
        network = start(lambda: policy_network(settings), seed, before)
        return ActorCritic(network, critic, settings, model(), seed)

    made = [
        Stage("imitation", imitate, settings.imitation_updates, max(settings.imitation_updates // 4, 1)),
        Stage("rl", improve, settings.rl_updates, settings.validate_every),
    ]
    return [x for x in made if x.updates]


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import HarmonyPolicy

    return HarmonyPolicy.load(path)


def judge(policy: Any, *, case: str = "", data: str = "") -> tuple[list[Interference], Maker, list[str]]:
    """Compare a policy with the rules and the oracles in the true cluster.

    Args:
        policy: the learned one.
        case: see `Settings`, by default the one that it was trained on.
        data: folder of cases that need data.
    """
    from ..interference.rivals import baselines

    on = replace(policy.settings, case=case or policy.settings.case, data=data or policy.settings.data)
    return [Interference(on.case, make=on.make)], lambda drawn, seed: policy, list(baselines())


RECIPE = Recipe(
    name=NAME,
    about="which task of which waiting job goes to which server, where jobs slow one another down",
    config=Settings,
    stages=stages,
    load=load,
    judge=judge,
    data="drawn cases of gangplan.systems.interference.cases, under speeds predicted by a model fitted to a log",
)
