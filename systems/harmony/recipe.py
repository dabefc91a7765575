"""How Harmony's policy is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gangplan.instances.lazy import later
from gangplan.learned.policy.recipe import Recipe
from gangplan.learned.training.trainer import Step, staged
from gangplan.simulator.ground import Maker

from ..interference.ground import Interference
from .settings import NAME, Settings


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
    stages=staged(
        f"{__package__}.learners:Training",
        lambda of: [
            Step("imitation", of.imitation_updates, of.imitation_updates // 4),
            Step("rl", of.rl_updates, of.validate_every),
        ],
    ),
    load=later(f"{__package__}.policy:HarmonyPolicy.load"),
    judge=judge,
    data="drawn cases of gangplan.systems.interference.cases, under speeds predicted by a model fitted to a log",
)
