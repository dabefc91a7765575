"""How the PAC-ML policy is trained, loaded and judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.instances import InstanceError

from ..policy.recipe import Recipe, start
from ..training.stages import Stage
from .settings import Settings

if TYPE_CHECKING:
    from ..training.checkpoint import Tensors
    from .network import Network
    from .scenarios import Scenario
    from .teacher import Labels, Taught

VARIOUS = ((4, 4, 1), (4, 4, 2), (4, 4, 4))


def stages(settings: Settings, device: str, seed: int) -> list[Stage]:
    """Return imitation of the teachers, again with labels of states the network comes to, then PPO.

    Each may be left out, but not all.
    """
    if not settings.imitation_updates and not settings.rl_updates:
        raise InstanceError("rl_updates", "is 0, as is imitation_updates: nothing would be trained")
    made, every = [], 10 * settings.validate_every
    teachers: list[Taught] = []
    if settings.imitation_updates:
        made.append(Stage("imitation", _imitation(settings, seed, teachers), settings.imitation_updates, every))
    if settings.imitation_updates and settings.corrected_updates:
        make = _correction(settings, seed, teachers)
        made.append(Stage("correction", make, settings.corrected_updates, every))
    if settings.rl_updates:
        made.append(
            Stage(
                "rl", _rl(settings, device, seed), settings.rl_updates, settings.validate_every,
                minutes=settings.rl_minutes,
            )
        )  # fmt: skip
    return made


def _imitation(settings: Settings, seed: int, teachers: list[Taught]) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from .evaluate import validation
        from .learners import imitation

        network, scenario = _start(settings, seed, before)
        teachers[:] = _teachers(scenario, settings, seed)
        return imitation(
            network, _labels(teachers, quick=True), validation(scenario, settings), settings, settings.imitation_rate,
            settings.imitation_updates, seed,
        )  # fmt: skip

    return make


def _correction(settings: Settings, seed: int, teachers: list[Taught]) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from .evaluate import validation
        from .learners import imitation
        from .teacher import corrected

        network, scenario = _start(settings, seed, before)
        # a run that is resumed here has its teachers to make anew
        found = corrected(teachers or _teachers(scenario, settings, seed), network, settings, seed)
        return imitation(
            network, _labels(found, quick=False), validation(scenario, settings), settings, settings.corrected_rate,
            settings.corrected_updates, seed + 1,
        )  # fmt: skip

    return make


def _teachers(scenario: Scenario, settings: Settings, seed: int) -> list[Taught]:
    from .scenarios import TRAINING
    from .teacher import taught

    return taught(scenario, settings, seed, first_seed=TRAINING)


def _labels(teachers: list[Taught], *, quick: bool) -> list[tuple[Scenario, Labels]]:
    return [(x.scenario, labels) for x in teachers for labels in (*x.searched, *(x.quick if quick else ()))]


def _rl(settings: Settings, device: str, seed: int) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from .episodes import ParallelEpisodes
        from .evaluate import validation
        from .learners import reinforcement
        from .scenarios import any_cases, published_cases, various

        network, scenario = _start(settings, seed, before)
        other = round(settings.lanes * settings.share_various)
        own, choose = settings.lanes - other, settings.blocks
        episodes = [ParallelEpisodes(scenario, published_cases(scenario), own, seed, choose=choose)]
        for i, size in enumerate(VARIOUS):
            count = other // len(VARIOUS)
            if count:
                made = various(size, seed + i, settings.units)
                episodes.append(ParallelEpisodes(made, any_cases(made), count, seed + 1 + i, choose=choose))
        return reinforcement(network, episodes, validation(scenario, settings), settings, seed, device)

    return make


def _start(settings: Settings, seed: int, before: Tensors | None) -> tuple[Network, Scenario]:
    from .network import Network
    from .scenarios import published

    network = start(lambda: Network(settings.width, settings.variant), seed, before)
    return network, published(settings.profiles, settings.units)


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
    """Return blocking rates and those of the best rules, see `gangplan.learned.ramp.evaluate`.

    Args:
        policy: the learned one.
        seeds: of the cases.
        profiles: folder of PipeDream profiles.
        models: joined by commas; by default the published five.
        units: by default those that it was trained in.
        cluster: communication groups x racks x servers in a rack.
        load, jobs: see `gangplan.simulator.ramp.arrivals`.
    """
    from gangplan.simulator.ramp import MODELS

    from .evaluate import evaluate as judge

    chosen: Any = units or policy.settings.get("units", ["physical"])[0]
    size = cluster.split("x")
    if len(size) != 3 or not all(part.isdigit() and int(part) for part in size):
        raise InstanceError("cluster", f"{cluster!r} is not of the form 4x4x2")
    return judge(
        policy, seeds, profiles=profiles, models=models.split(",") if models else MODELS,
        units=chosen, cluster=[int(part) for part in size], load=load,
        jobs=jobs,
    )  # fmt: skip


def export(policy: Any, path: Path) -> tuple[Path, Path]:
    """Write a policy as ONNX."""
    from .onnx import export as write

    return write(policy, path)


def _seeds(settings: Settings, seed: int) -> dict[str, Any]:
    from .scenarios import TRAINING, VALIDATION

    return {"training": f"from {TRAINING}", "validation": f"from {VALIDATION}", "run": seed}


RECIPE = Recipe(
    name="pacml",
    about="how far to split a job that arrives on a RAMP cluster, and on which block of servers it runs",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    export=export,
    data="PAC-ML's five PipeDream profiles and generated networks; distributions A to D, and others",
    seeds=_seeds,
    accelerated=True,
)
