"""How MARL's policy is trained, loaded and judged."""

from __future__ import annotations

from typing import Any

from gangplan.instances.lazy import later
from gangplan.learned.policy.recipe import Recipe
from gangplan.learned.training.trainer import Step, staged
from gangplan.simulator.ground import Maker

from ..interference.ground import Agents
from .settings import NAME, Settings


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
    stages=staged(
        f"{__package__}.learners:Training",
        lambda of: [
            *(Step(f"imitation-{i}", of.imitation_updates, of.imitation_updates // 4) for i in range(of.rounds)),
            Step("rl", of.rl_updates, of.validate_every),
        ],
    ),
    load=later(f"{__package__}.policy:MarlPolicy.load"),
    judge=judge,
    data="small data centres of gangplan.systems.interference, under speeds predicted by models fitted to logs",
)
