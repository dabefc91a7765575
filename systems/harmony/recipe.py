"""How Harmony's policy is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage

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


def evaluate(policy: Any, seeds: Any, *, case: str = "", data: str = "") -> list[dict[str, Any]]:
    """Return figures of a policy, of the rules and of the oracles in the true cluster, a row for each and each seed.

    Args:
        policy: the learned one.
        seeds: of the cases.
        case: see `Settings`, by default the one that it was trained on.
        data: folder of cases that need data.
    """
    from ..interference.evaluate import baselines
    from ..interference.evaluate import evaluate as simulate_all

    on = replace(policy.settings, case=case or policy.settings.case, data=data or policy.settings.data)
    seeds = list(seeds)
    found = simulate_all({"learned": lambda case: policy, **baselines()}, on.make, seeds)
    return [
        {"policy": name, "case": on.case, "seed": seed, "mean_jct": one.mean_jct[i], "p95_jct": one.p95_jct[i]}
        for name, one in found.items()
        for i, seed in enumerate(seeds)
    ]


RECIPE = Recipe(
    name=NAME,
    about="which task of which waiting job goes to which server, where jobs slow one another down",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    data="drawn cases of gangplan.systems.interference.cases, under speeds predicted by a model fitted to a log",
)
