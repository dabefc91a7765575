"""How the selector is trained, loaded and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage
from gangplan.simulator.ground import Maker

from ..ground import Topdrl
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


def judge(policy: Any, *, suites: str = ",".join(JUDGED)) -> tuple[list[Topdrl], Maker, tuple[str, ...]]:
    """Compare a policy with rules.

    Args:
        policy: the learned one.
        suites: names of `gangplan.systems.topdrl.suites.SUITES`, joined by commas.
    """
    grounds = [Topdrl(name) for name in suites.split(",")]
    return grounds, grounds[0].always(policy), RIVALS


RECIPE = Recipe(
    name=NAME,
    about="which job starts next on TopDRL's cluster, and on which GPUs, or to wait",
    config=Settings,
    stages=stages,
    load=load,
    judge=judge,
    data="mixes of jobs like TopDRL's, and with lognormal lengths, on 2 racks of 4 nodes of 4 GPUs",
)
