"""How the policy for jobs that slow one another down is fitted, loaded and judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gangplan.instances.lazy import later
from gangplan.learned.policy.recipe import Recipe
from gangplan.learned.training.trainer import Step, staged
from gangplan.simulator.ground import Maker

from ...interference.ground import Interference
from .settings import NAME, Settings


def judge(policy: Any, *, case: str = "") -> tuple[list[Interference], Maker, list[str]]:
    """Compare a policy with the rules and the oracles in the true cluster.

    Args:
        policy: the learned one.
        case: by default the one that it was fitted for.
    """
    from ...interference.rivals import baselines

    on = replace(policy.settings, case=case or policy.settings.case)
    return [Interference(on.case, make=on.make)], lambda drawn, seed: policy, list(baselines())


RECIPE = Recipe(
    name=NAME,
    about="where gangs are placed that slow one another down, by speeds that a log tells",
    config=Settings,
    stages=staged(f"{__package__}.learners:Training", lambda of: [Step("fit", of.updates, of.updates)]),
    load=later(f"{__package__}.policy:ColocatePolicy.load"),
    judge=judge,
    data="a log of a case of gangplan.systems.interference: who was where, and how fast; training seeds from 2000000",
)
