"""How the selector may be configured, is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gangplan.instances.lazy import Later
from gangplan.learned.policy.recipe import Recipe
from gangplan.learned.policy.settings import RecipeSettings as Limited
from gangplan.learned.policy.settings import limited
from gangplan.learned.training.trainer import Step, staged
from gangplan.simulator.ground import Maker

from ..ground import Topdrl

NAME = "select"
JUDGED = ("small", "expensive", "mixed", "loaded", "uncertain")
"""Suites of which workloads with validation seeds judge a network."""


@dataclass(frozen=True, slots=True)
class SelectSettings(Limited):
    """Hyper-parameters of the selector and its training.

    Attributes:
        width: of its hidden layers.
        labels: decisions that the teacher labels, of states that it comes to.
        futures, ahead: that the teacher plays with each candidate, and arrivals in each.
        updates, rate: of imitation.
        minibatch: decisions.
        temperature, cross_entropy: of the cross-entropy to softmax(-regret / temperature), and its weight.
        validate_every: updates from one validation to the next.
        validation_seeds: workloads of each suite.
    """

    RETIRED: ClassVar[frozenset[str]] = frozenset({"corrected", "corrected_updates", "corrected_rate"})
    """Of imitation in states that the network comes to, which made no difference: they stand on cards of weights."""

    width: int = limited(64, least=1)
    labels: int = limited(36_000, least=1)
    futures: int = limited(24, least=1)
    ahead: int = limited(30, least=0)
    updates: int = limited(1500, least=1)
    rate: float = limited(2e-3, above=0)
    minibatch: int = limited(256, least=1)
    temperature: float = limited(1.0, above=0)
    cross_entropy: float = limited(0.1, least=0)
    validate_every: int = limited(500, least=1)
    validation_seeds: int = limited(8, least=1)


RIVALS = ("least_work", "linear", "sjf", "tetris")


def judge(policy: Any, *, suites: str = ",".join(JUDGED)) -> tuple[list[Topdrl], Maker, tuple[str, ...]]:
    """Compare a policy with rules.

    Args:
        suites: names of `gangplan.systems.topdrl.suites.SUITES`, joined by commas.
    """
    grounds = [Topdrl(name) for name in suites.split(",")]
    return grounds, grounds[0].always(policy), RIVALS


RECIPE = Recipe(
    name=NAME,
    about="which job starts next on TopDRL's cluster, and on which GPUs, or to wait",
    config=SelectSettings,
    stages=staged(f"{__package__}.learners:Training", lambda of: [Step("imitation", of.updates, of.validate_every)]),
    load=Later(f"{__package__}.policy:SelectPolicy.load"),
    judge=judge,
    data="mixes of jobs like TopDRL's, and with lognormal lengths, on 2 racks of 4 nodes of 4 GPUs",
)
