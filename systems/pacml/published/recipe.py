"""How PAC-ML's published policy may be configured, is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gangplan.instances.arrays import limited
from gangplan.instances.lazy import Later
from gangplan.instances.published import DATA
from gangplan.learned.policy.settings import PpoSettings
from gangplan.learned.training.recipe import Recipe
from gangplan.learned.training.trainer import staged

from ..ground import Pacml
from ..step import Units

NAME = "pacml-published"


@dataclass(frozen=True, slots=True)
class PublishedSettings(PpoSettings):
    """Hyper-parameters of the published policy and its training; of PPO, see `PpoSettings`, for each distribution.

    Attributes:
        profiles: folder of the published models' PipeDream profiles.
        units: in which it is trained and judged.
        rounds: of messages along the edges of the op graph.
        node, graph, width: numbers of an op, of what is known of job and cluster, and of the hidden layer.
        starts, spread: networks of which that begins whose best actions block least, and how far apart their first
            scores are by chance. Otherwise 8 wins on B, and not the better 16.
        pay: what a reward of 1 counts, so that values are about 1.
        validate_every: updates from one validation to the next.
        validation_seeds: cases of each distribution.
    """

    profiles: str = f"{DATA}/pipedream"
    units: Units = "as-published"
    rounds: int = limited(2, positive=True)
    node: int = limited(16, positive=True)
    graph: int = limited(8, positive=True)
    width: int = limited(256, positive=True)
    starts: int = limited(24, positive=True)
    spread: float = 1.0
    pay: float = limited(0.01, positive=True)
    validate_every: int = limited(20, positive=True)
    validation_seeds: int = limited(16, positive=True)


def judge(policy: Any) -> tuple[list[Pacml], tuple[str, ...]]:
    """Compare a policy with published rules on each distribution, in the units that it was trained in."""
    grounds = [Pacml(f"{DATA}/pipedream", letter, policy.settings.units) for letter in "ABCD"]
    return grounds, ("para-max", "constant-2", "constant-4", "constant-16")


RECIPE = Recipe(
    name=NAME,
    about="how far to split a job that arrives on a RAMP cluster, as PAC-ML was published",
    config=PublishedSettings,
    stages=staged(
        f"{__package__}.learners:PublishedTraining",
        lambda of: {f"ppo-{i}": (of.rl_updates, of.validate_every) for i in range(4)},
    ),
    load=Later(f"{__package__}.policy:PublishedPolicy.load"),
    judge=judge,
    data="PAC-ML's five PipeDream profiles; distributions A to D, a network each",
)
