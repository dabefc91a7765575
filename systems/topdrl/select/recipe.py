"""How the selector is trained, loaded and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage

from .settings import JUDGED, NAME, Settings

if TYPE_CHECKING:
    from gangplan.learned.training.checkpoint import Tensors

RIVALS = ("least_work", "linear", "sjf", "tetris")


def stages(settings: Settings, seed: int) -> list[Stage]:
    """Return imitation of the teacher."""

    def imitate(before: Tensors | None) -> Any:
        from .learners import Validation, imitation
        from .network import Network
        from .teacher import labels

        network = start(lambda: Network(settings.width), seed, before)
        return imitation(network, labels(settings, seed), Validation(settings.validation_seeds), settings, seed)

    return [Stage("imitation", imitate, settings.updates, settings.validate_every)]


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import SelectPolicy

    return SelectPolicy.load(path)


def evaluate(policy: Any, seeds: Any, *, suites: str = ",".join(JUDGED)) -> list[dict[str, Any]]:
    """Return figures of a policy and of rules: a row for each, each suite and each seed.

    Args:
        policy: the learned one.
        seeds: of the workloads.
        suites: names of `gangplan.systems.topdrl.suites.SUITES`, joined by commas.
    """
    from dataclasses import asdict

    from ..evaluate import evaluate as run_all
    from ..rules import rule
    from ..suites import suite

    policies = {"learned": policy, **{name: rule(name) for name in RIVALS}}
    return [asdict(row) for name in suites.split(",") for row in run_all(policies, suite(name), list(seeds))]


RECIPE = Recipe(
    name=NAME,
    about="which job starts next on TopDRL's cluster, and on which GPUs, or to wait",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    data="mixes of jobs like TopDRL's, and with lognormal lengths, on 2 racks of 4 nodes of 4 GPUs",
)
