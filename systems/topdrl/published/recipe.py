"""How TopDRL's policy is trained, loaded and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage
from gangplan.simulator.ground import Maker

from ..ground import Topdrl
from .settings import NAME, Settings

if TYPE_CHECKING:
    from gangplan.learned.training.checkpoint import Tensors


def stages(settings: Settings, seed: int) -> list[Stage]:
    """Return imitation, if there is to be any, and PPO."""

    def imitate(before: Tensors | None) -> Any:
        from .learners import imitation
        from .network import Network

        return imitation(start(lambda: Network(settings), seed, before), settings, seed)

    def improve(before: Tensors | None) -> Any:
        from .learners import ppo
        from .network import Critic, Network

        critic = start(lambda: Critic(settings), seed + 1, None)
        return ppo(start(lambda: Network(settings), seed, before), critic, settings, seed)

    made = [
        Stage("imitation", imitate, settings.imitation_updates, max(settings.imitation_updates // 5, 1)),
        Stage("rl", improve, settings.rl_updates, settings.validate_every),
    ]
    return [x for x in made if x.updates]


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import TopdrlPolicy

    return TopdrlPolicy.load(path)


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
    stages=stages,
    load=load,
    judge=judge,
    data="drawn workloads of TopDRL's mix",
)
