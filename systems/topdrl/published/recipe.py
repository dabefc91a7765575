"""How TopDRL's policy is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage

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


def evaluate(policy: Any, seeds: Any, *, workload: str = "") -> list[dict[str, Any]]:
    """Return figures of a policy and of the published rules with the same allocator, a row for each and each seed.

    Args:
        policy: the learned one.
        seeds: of the workloads.
        workload: one of `gangplan.systems.topdrl.suites.SUITES`, by default the one that it was trained on.
    """
    from ..allocate import ALLOCATORS
    from ..evaluate import evaluate as simulate_all
    from ..policies import PUBLISHED, make_policy
    from ..suites import suite

    found = suite(workload or policy.settings.size)
    policy.step = found.step
    rivals = {name: make_policy(f"{name}+{ALLOCATORS[policy.allocator]}") for name in PUBLISHED}
    return [asdict(row) for row in simulate_all({"learned": policy, **rivals}, found, list(seeds))]


RECIPE = Recipe(
    name=NAME,
    about="which job of the queue starts next on a cluster where close GPUs are faster",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    data="drawn workloads of TopDRL's mix",
)
