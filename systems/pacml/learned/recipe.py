"""How the PAC-ML policy is trained, loaded and judged."""

from __future__ import annotations

from typing import Any

from gangplan.instances.lazy import later
from gangplan.learned.policy.recipe import Recipe
from gangplan.learned.training.trainer import Step, staged
from gangplan.simulator.ground import Maker

from ..ground import Pacml
from .settings import NAME, Settings

TRAINING, VALIDATION = 2_000_000, 1_000_000
"""Where the seeds of cases begin; those below a million are for tests."""

RIVALS = (
    *("constant-2", "constant-4", "constant-6", "constant-16"),
    *("smallest+best", "from-2+best", "about-4+first", "from-8+best"),
)
"""The best constants and rules with a block of each distribution, in either of the units: docs/pacml-results.md."""


def judge(
    policy: Any,
    *,
    profiles: str = "../shared/data/pipedream",
    models: str = "",
    units: str = "",
    cluster: str = "4x4x2",
    load: float = 1.0,
    jobs: int = 1000,
) -> tuple[list[Pacml], Maker, tuple[str, ...]]:
    """Compare a policy with the best rules on each distribution.

    Args:
        policy: the learned one.
        profiles: folder of PipeDream profiles.
        models: joined by commas; by default the published five.
        units: by default those that it was trained in.
        cluster: communication groups x racks x servers in a rack.
        load, jobs: see `gangplan.systems.pacml.arrivals`.
    """
    chosen = units or policy.settings.units[0]
    grounds = [Pacml(profiles, letter, chosen, models, cluster, jobs, load) for letter in "ABCD"]
    return grounds, lambda drawn, seed: policy, RIVALS


RECIPE = Recipe(
    name=NAME,
    about="how far to split a job that arrives on a RAMP cluster, and on which block of servers it runs",
    config=Settings,
    stages=staged(
        f"{__package__}.learners:Training",
        lambda of: [
            Step("imitation", of.imitation_updates, of.validate_every),
            Step("correction", of.corrected_updates, of.validate_every),
        ],
    ),
    load=later(f"{__package__}.policy:RampPolicy.load"),
    judge=judge,
    export=later(f"{__package__}.onnx:export"),
    data="PAC-ML's five PipeDream profiles; distributions A to D",
)
