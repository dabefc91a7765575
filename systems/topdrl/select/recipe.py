"""How the selector is trained, loaded and judged."""

from __future__ import annotations

from typing import Any

from gangplan.instances.lazy import later
from gangplan.learned.policy.recipe import Recipe
from gangplan.learned.training.trainer import Step, staged
from gangplan.simulator.ground import Maker

from ..ground import Topdrl
from .settings import JUDGED, NAME, Settings

RIVALS = ("least_work", "linear", "sjf", "tetris")


def judge(policy: Any, *, suites: str = ",".join(JUDGED)) -> tuple[list[Topdrl], Maker, tuple[str, ...]]:
    """Compare a policy with rules.

    Args:
        policy: the learned one.
        suites: names of `gangplan.systems.topdrl.suites.SUITES`, joined by commas.
    """
    grounds = [Topdrl(name) for name in suites.split(",")]
    return grounds, grounds[0].always(policy), RIVALS


RECIPE = Recipe(
    name=NAME,
    about="which job starts next on TopDRL's cluster, and on which GPUs, or to wait",
    config=Settings,
    stages=staged(f"{__package__}.learners:Training", lambda of: [Step("imitation", of.updates, of.validate_every)]),
    load=later(f"{__package__}.policy:SelectPolicy.load"),
    judge=judge,
    data="mixes of jobs like TopDRL's, and with lognormal lengths, on 2 racks of 4 nodes of 4 GPUs",
)
