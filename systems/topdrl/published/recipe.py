"""How TopDRL's policy is trained, loaded and judged."""

from __future__ import annotations

from typing import Any

from gangplan.instances.lazy import later
from gangplan.learned.policy.recipe import Recipe
from gangplan.learned.training.trainer import Step, staged
from gangplan.simulator.ground import Maker

from ..ground import Topdrl
from .settings import NAME, Settings


def judge(policy: Any, *, workload: str = "") -> tuple[list[Topdrl], Maker, list[str]]:
    """Compare a policy with the published rules with the same allocator.

    Args:
        policy: the learned one.
        workload: one of `gangplan.systems.topdrl.suites.SUITES`, by default the one that it was trained on.
    """
    from ..allocate import ALLOCATORS
    from ..policies import PUBLISHED

    ground = Topdrl(workload or policy.settings.size)
    policy.step = ground.on.step
    return [ground], ground.always(policy), [f"{name}+{ALLOCATORS[policy.allocator]}" for name in PUBLISHED]


RECIPE = Recipe(
    name=NAME,
    about="which job of the queue starts next on a cluster where close GPUs are faster",
    config=Settings,
    stages=staged(
        f"{__package__}.learners:Training",
        lambda of: [
            Step("imitation", of.imitation_updates, of.imitation_updates // 5),
            Step("rl", of.rl_updates, of.validate_every),
        ],
    ),
    load=later(f"{__package__}.policy:TopdrlPolicy.load"),
    judge=judge,
    data="drawn workloads of TopDRL's mix",
)
