"""How the selector is trained, loaded and judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..policy.recipe import Recipe, start
from ..training.stages import Stage
from .settings import NAME, Settings

if TYPE_CHECKING:
    from ..training.checkpoint import Tensors
    from .teacher import Labels

SUITES = "small,expensive,mixed,loaded,uncertain"
RIVALS = ("least_work", "linear", "sjf", "tetris")


def stages(settings: Settings, device: str, seed: int) -> list[Stage]:
    """Return imitation of the teacher, then again with labels of states that the network comes to, besides."""
    taught: list[Labels] = []
    made = [
        Stage("imitation", _stage(settings, seed, taught, corrects=False), settings.updates, settings.validate_every)
    ]
    if settings.corrected_updates and settings.corrected:
        stage = _stage(settings, seed, taught, corrects=True)
        made.append(Stage("correction", stage, settings.corrected_updates, settings.validate_every))
    return made


def _stage(settings: Settings, seed: int, taught: list[Labels], *, corrects: bool) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from .learners import Validation, imitation
        from .network import Network, compiled
        from .teacher import join, labels

        network = start(lambda: Network(settings.width), seed, before)
        taught[:] = taught or [labels(settings, None, seed)]  # a run that is resumed at the correction has them to make
        found = join([*taught, labels(settings, compiled(network), seed)]) if corrects else taught[0]
        judge = Validation(settings.validation_seeds)
        rate, updates = settings.rate, settings.updates
        if corrects:
            rate, updates = settings.corrected_rate, settings.corrected_updates
        return imitation(network, found, judge, settings, rate, updates, seed + corrects)

    return make


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import SelectPolicy

    return SelectPolicy.load(path)


def evaluate(
    policy: Any, seeds: Any, *, suites: str = "small,expensive,mixed,loaded,uncertain"
) -> list[dict[str, Any]]:
    """Return figures of a policy and of rules: a row for each, each suite and each seed.

    Args:
        policy: the learned one.
        seeds: of the workloads.
        suites: names of `gangplan.simulator.proximity.suites.SUITES`, joined by commas.
    """
    from dataclasses import asdict

    from gangplan.simulator.proximity import evaluate as run_all
    from gangplan.simulator.proximity import rule
    from gangplan.simulator.proximity.suites import suite

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
    seeds=lambda settings, seed: {"training": "from 2000000", "validation": "from 1000000", "run": seed},
)
