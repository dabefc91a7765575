"""How the policy for jobs that slow one another down is fitted, loaded and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gangplan.instances.arrays import check_fields, limited, require_choice
from gangplan.instances.lazy import Later
from gangplan.learned.training.recipe import Recipe
from gangplan.learned.training.trainer import staged

from ...interference.ground import Interference

if TYPE_CHECKING:
    from ...interference.case import InterferenceCase

NAME = "colocate"


@dataclass(frozen=True, slots=True)
class ColocateSettings:
    """The log, the model of speeds, and how the way to place is chosen.

    Attributes:
        case: whose cluster it is for, of `CASES` or `DATA_CASES`, with the data where `DATA` says.
        cluster: seed of the truth, of cases on the testbed.
        samples, noise: of the log, and of the speeds in it.
        explore: share of the log under random placements.
        members, kinds: of the ensemble, and of pressure.
        updates, rate, minibatch: of the fit; a minibatch is so many jobs.
        validation_seeds: cases that are played under the speeds of a member each, to choose how to place by the others.
    """

    case: str = "poisson"
    cluster: int = 0
    samples: int = limited(2000, least=100)
    noise: float = 0.02
    explore: float = limited(0.25, most=1)
    members: int = limited(4, least=3)
    kinds: int = limited(8, positive=True)
    updates: int = limited(400, positive=True)
    rate: float = limited(0.06, positive=True)
    minibatch: int = limited(1000, positive=True)
    validation_seeds: int = limited(12, positive=True)

    def __post_init__(self) -> None:
        from ...interference.cases import CASES, DATA_CASES

        check_fields(self)
        require_choice(self.case, "case", (*CASES, *DATA_CASES))

    def make(self, seed: int) -> InterferenceCase:
        """Return the case of a seed, with the true cluster."""
        from ...interference.cases import maker

        words: dict[str, Any] = {"cluster": self.cluster} if self.cluster else {}
        return maker(self.case, **words)(seed)


def judge(policy: Any) -> tuple[list[Interference], list[str]]:
    """Compare a policy with the rules and the oracles in the true cluster of the case that it was fitted for."""
    from ...interference.baselines import baselines

    return [Interference(policy.settings.case, cluster=policy.settings.cluster)], list(baselines())


RECIPE = Recipe(
    name=NAME,
    about="where gangs are placed that slow one another down, by speeds that a log tells",
    config=ColocateSettings,
    stages=staged(f"{__package__}.learners:ColocateTraining", lambda of: {"fit": (of.updates, of.updates)}),
    load=Later(f"{__package__}.policy:ColocatePolicy.load"),
    judge=judge,
    data="a log of a case of gangplan.systems.interference: who was where, and how fast; training seeds from 2000000",
)
