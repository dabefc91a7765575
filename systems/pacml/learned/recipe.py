"""How the PAC-ML policy is trained, loaded and judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.instances.intake import cluster_sizes
from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage

from .settings import NAME, Settings

if TYPE_CHECKING:
    from gangplan.learned.training.checkpoint import Tensors

    from .teacher import Taught

TRAINING, VALIDATION = 2_000_000, 1_000_000
"""Where the seeds of cases begin; those below a million are for tests."""

RIVALS = (
    *("constant-2", "constant-4", "constant-6", "constant-16"),
    *("smallest+best", "from-2+best", "about-4+first", "from-8+best"),
)
"""The best constants and rules with a block of each distribution, in either of the units: docs/pacml-results.md."""


def stages(settings: Settings, seed: int) -> list[Stage]:
    """Return imitation of the teachers, then again with labels of states that the network comes to."""
    teachers: list[Taught] = []

    def stage(name: str, updates: int, rate: float, corrects: bool) -> Stage:
        make = _imitation(settings, seed, teachers, updates, rate, corrects=corrects)
        return Stage(name, make, updates, settings.validate_every)

    made = [stage("imitation", settings.imitation_updates, settings.imitation_rate, False)]
    if settings.corrected_updates:
        made.append(stage("correction", settings.corrected_updates, settings.corrected_rate, True))
    return made


def _imitation(
    settings: Settings, seed: int, teachers: list[Taught], updates: int, rate: float, *, corrects: bool
) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from .learners import imitation, validation
        from .network import Network
        from .scenarios import published
        from .teacher import corrected, taught

        network = start(lambda: Network(settings.width, settings.variant), seed, before)
        scenario = published(settings.profiles, settings.units, settings.shorter, seed)
        # a run that is resumed at the correction has its teachers to make anew
        teachers[:] = teachers or taught(scenario, settings, seed)
        found = corrected(teachers, network, settings, seed) if corrects else teachers
        labels = [(*teacher.searched, *(() if corrects else teacher.quick)) for teacher in found]
        judge = validation(scenario, settings)
        return imitation(network, labels, judge, settings, rate, updates, seed + corrects)

    return make


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import RampPolicy

    return RampPolicy.load(path)


def evaluate(
    policy: Any,
    seeds: Any,
    *,
    profiles: str = "../shared/data/pipedream",
    models: str = "",
    units: str = "",
    cluster: str = "4x4x2",
    load: float = 1.0,
    jobs: int = 1000,
) -> list[dict[str, Any]]:
    """Return blocking rates of a policy and of the best rules: a row for each, each distribution and each seed.

    Args:
        policy: the learned one.
        seeds: of the cases.
        profiles: folder of PipeDream profiles.
        models: joined by commas; by default the published five.
        units: by default those that it was trained in.
        cluster: communication groups x racks x servers in a rack.
        load, jobs: see `gangplan.systems.pacml.arrivals`.
    """
    from gangplan.instances import RampTopology

    from ..blocks import Blocks
    from ..evaluate import evaluate as simulate_all
    from ..jobs import MODELS, read_types

    chosen: Any = units or policy.settings.get("units", ["physical"])[0]
    blocks = Blocks(RampTopology(*cluster_sizes(cluster, "", "4x4x2")))
    types = read_types(profiles, models.split(",") if models else MODELS, blocks=blocks, units=chosen)
    cases = list(seeds)
    found = simulate_all(types, [("learned", lambda seed: policy), *RIVALS], seeds=cases, n=jobs, load=load)
    return [
        {
            "policy": x.policy, "distribution": x.distribution, "units": chosen, "seed": seed,
            "blocked": float(x.blocked[i]), "blocked_or_running": float(x.blocked_or_running[i]),
        }
        for x in found
        for i, seed in enumerate(cases)
    ]  # fmt: skip


def export(policy: Any, path: Path) -> tuple[Path]:
    """Write a policy as ONNX."""
    from .onnx import export as write

    return write(policy, path)


RECIPE = Recipe(
    name=NAME,
    about="how far to split a job that arrives on a RAMP cluster, and on which block of servers it runs",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    export=export,
    data="PAC-ML's five PipeDream profiles; distributions A to D",
)
