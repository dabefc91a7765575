"""How MARL's policy is trained, loaded and judged."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage

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


def evaluate(policy: Any, seeds: Any, *, case: str = "") -> list[dict[str, Any]]:
    """Return figures of a policy, of blind agents and of single schedulers in the true cluster, a row for each seed.

    Args:
        policy: the learned one.
        seeds: of the cases.
        case: of `CENTRES`, by default the first that it was trained on, with 64 servers.
    """
    from ..interference.cases import CENTRES
    from ..interference.evaluate import evaluate as simulate_all
    from ..interference.policies import make_policy

    seeds, case = list(seeds), case or policy.settings.cases[0]
    rivals = ("lif", "tetris", "lb", "agents-lif", "agents-random", "market", "lif-near")
    found = simulate_all(
        {"learned": lambda _: policy} | {x: make_policy(x, case) for x in rivals}, CENTRES[case], seeds
    )
    return [
        {"policy": name, "case": case, "seed": seed, "mean_jct": one.mean_jct[i], "p95_jct": one.p95_jct[i]}
        for name, one in found.items()
        for i, seed in enumerate(seeds)
    ]


RECIPE = Recipe(
    name=NAME,
    about="where agents that own racks place tasks, and to whom they pass jobs on",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    data="small data centres of gangplan.systems.interference, under speeds predicted by models fitted to logs",
)
