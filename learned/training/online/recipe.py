"""How the graph policy is trained, loaded and judged."""

from __future__ import annotations

from typing import Any

from gangplan.instances.lazy import Later

from ...online.settings import NAME, GnnSettings
from ..recipe import Recipe
from ..trainer import staged


def verdict(policy: Any, settings: GnnSettings) -> list[dict[str, Any]]:
    """Return rows that say whether to use a policy on one's own cluster; none if it learned from no trace."""
    from .own import OwnCluster

    return OwnCluster(settings.trace, settings.cluster).verdict(policy) if settings.trace else []


RECIPE = Recipe(
    name=NAME,
    about="which job starts next on a cluster where close GPUs are faster, on which GPUs, or to wait",
    config=GnnSettings,
    stages=staged(
        f"{__package__}.learners:GnnTraining",
        lambda of: {
            "exact": (of.exact_updates, of.validate_every),
            "rollouts": (of.updates, of.validate_every),
            "rl": (of.rl_updates, 10),
        },
    ),
    load=Later("gangplan.learned.online.policy:GnnPolicy.load"),
    verdict=verdict,
    torch=False,
    data="jobs like TopDRL's, Philly's, and of lognormal lengths, on loaded clusters of 16 to 2,048 GPUs",
)
