"""How the PAC-ML policy may be configured, is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gangplan.instances import InstanceError
from gangplan.instances.arrays import check_fields, limited
from gangplan.instances.lazy import Later
from gangplan.instances.published import DATA
from gangplan.learned.training.recipe import Recipe
from gangplan.learned.training.trainer import staged

from ..ground import Pacml
from ..step import Units

NAME = "pacml"


@dataclass(frozen=True, slots=True)
class PacmlSettings:
    """Hyper-parameters of the PAC-ML policy and its training.

    Attributes:
        profiles: folder of the published models' PipeDream profiles.
        units: in which the network is trained and judged.
        shorter: sets of types besides the published one, of the same models for fewer steps; without them the network
            learns the five lengths by heart, and other models are blocked more often.
        width: of its hidden layers.
        blocks: whether it chooses the block; else a degree, and published first fit places each op.
        imitation_updates, imitation_rate, temperature, minibatch: of imitation.
        labels: decisions that the teacher labels by its table, in each published setting.
        searched: decisions that it labels by rollouts.
        planned: distributions of which it plans futures instead of playing on,
        planned_labels: decisions of each of them that it labels so, thirty times as fast as by rollouts.
        corrected: decisions that it labels by rollouts besides, in states that the network comes to.
        planned_corrected: the same by plans.
        corrected_updates, corrected_rate: of imitation with them; 0 updates leave that stage out.
        rounds: of policy iteration that make the teacher's table, and episodes in each.
        validate_every: updates from one validation to the next.
        validation_seeds: cases of each published setting.
        processes: that label at once.
    """

    RETIRED: ClassVar[frozenset[str]] = frozenset(
        (
            *("rl_updates", "rl_rate", "rl_minutes", "critic_rate", "gamma", "lam", "entropy", "passes", "lanes"),
            *("steps", "warm", "share_various", "variant"),
        )
    )
    """Of PPO, which added nothing, and of what else was seen: weights that were made then say so on their cards."""

    profiles: str = f"{DATA}/pipedream"
    units: tuple[Units, ...] = ("physical",)
    shorter: int = 0
    width: int = limited(96, positive=True)
    blocks: bool = True
    imitation_updates: int = limited(3000, positive=True)
    imitation_rate: float = limited(2e-3, positive=True)
    temperature: float = limited(0.02, positive=True)
    minibatch: int = limited(512, positive=True)
    labels: int = limited(6000, positive=True)
    searched: int = 1500
    planned: tuple[str, ...] = ()
    planned_labels: int = 5000
    corrected: int = 800
    planned_corrected: int = 800
    corrected_updates: int = 3000
    corrected_rate: float = limited(1e-3, positive=True)
    rounds: int = limited(7, positive=True)
    validate_every: int = limited(250, positive=True)
    validation_seeds: int = limited(8, positive=True)
    processes: int = limited(2, positive=True)

    def __post_init__(self) -> None:
        check_fields(self)
        for name, wrong, why in (
            ("planned", not set(self.planned) <= set("ABCD"), "names others than A, B, C, D"),
            ("planned", self.planned and not self.blocks, "is of blocks, and none is chosen"),
            ("units", not self.units or len(set(self.units)) < len(self.units), "names none, or one twice"),
        ):
            if wrong:
                raise InstanceError(name, f"{getattr(self, name)!r} {why}")


TRAINING, VALIDATION = 2_000_000, 1_000_000
"""Where the seeds of cases begin; those below a million are for tests."""

RIVALS = (
    *("constant-2", "constant-4", "constant-6", "constant-16"),
    *("smallest+best", "from-2+best", "about-4+first", "from-8+best"),
)
"""The best constants and rules with a block of each distribution, in either of the units: docs/pacml-results.md."""


def judge(policy: Any) -> tuple[list[Pacml], tuple[str, ...]]:
    """Compare a policy with the best rules on each distribution, in the units that it was trained in."""
    units = policy.settings.units[0]
    return [Pacml(f"{DATA}/pipedream", letter, units) for letter in "ABCD"], RIVALS


RECIPE = Recipe(
    name=NAME,
    about="how far to split a job that arrives on a RAMP cluster, and on which block of servers it runs",
    config=PacmlSettings,
    stages=staged(
        f"{__package__}.learners:PacmlTraining",
        lambda of: {
            "imitation": (of.imitation_updates, of.validate_every),
            "correction": (of.corrected_updates, of.validate_every),
        },
    ),
    load=Later(f"{__package__}.policy:RampPolicy.load"),
    judge=judge,
    data="PAC-ML's five PipeDream profiles; distributions A to D",
)
