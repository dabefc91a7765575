"""How the PAC-ML policy is trained, loaded and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.instances import InstanceError

from ..policy.recipe import Recipe
from ..training.stages import Stage
from .settings import Settings

if TYPE_CHECKING:
    import numpy as np

    from ..training.checkpoint import Tensors
    from .network import Network
    from .worlds import Episode, World

VALIDATION, TRAINING = 1_000_000, 2_000_000
"""Where the seeds of cases begin; those below a million are for tests."""

EPISODE = 2000
JUDGED = "BBAC"
"""The users of the worlds beside the published in which a network is judged, if it is trained in any."""

VARIOUS = ((4, 4, 1), (4, 4, 2), (4, 4, 4))


def stages(settings: Settings, device: str, seed: int) -> list[Stage]:
    """Return imitation of the table's values, then PPO; either may be left out."""
    if not settings.imitation_updates and not settings.rl_updates:
        raise InstanceError("rl_updates", "is 0, as is imitation_updates: nothing would be trained")
    made = []
    if settings.imitation_updates:
        every = 10 * settings.validate_every
        made.append(Stage("imitation", _imitation(settings, seed), settings.imitation_updates, every))
    if settings.rl_updates:
        made.append(
            Stage(
                "rl", _rl(settings, device, seed), settings.rl_updates, settings.validate_every,
                minutes=settings.rl_minutes,
            )
        )  # fmt: skip
    return made


def _imitation(settings: Settings, seed: int) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from .imitation import Imitation
        from .labels import labelled, labelled_elsewhere

        _, network, world = _start(settings, seed, before)
        labels = labelled(
            world,
            settings.labels,
            settings.searched,
            seed,
            first_seed=TRAINING,
            choose=settings.blocks,
            processes=settings.processes,
            rounds=settings.rounds,
        )
        for unit in settings.units if settings.worlds else ():
            labels += labelled_elsewhere(
                settings.profiles,
                unit,
                settings.worlds,
                settings.world_labels,
                settings.world_searched,
                seed,
                first_seed=TRAINING,
                choose=settings.blocks,
                processes=settings.processes,
            )
        return Imitation(network, labels, _validation(world, settings), settings, settings.imitation_updates, seed)

    return make


def _rl(settings: Settings, device: str, seed: int) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from .lanes import Lanes
        from .reinforce import Reinforce
        from .worlds import various

        torch, network, world = _start(settings, seed, before)
        torch.manual_seed(seed + 1)
        other = round(settings.lanes * settings.share_various)
        lanes = [Lanes(world, _published(world), settings.lanes - other, seed, choose=settings.blocks)]
        for i, size in enumerate(VARIOUS):
            count = other // len(VARIOUS)
            if count:
                made = various(size, seed + i, settings.units)
                lanes.append(Lanes(made, _anything(made), count, seed + 1 + i, choose=settings.blocks))
        return Reinforce(network, lanes, _validation(world, settings), settings, seed, device)

    return make


def _start(settings: Settings, seed: int, before: Tensors | None) -> tuple[Any, Network, World]:
    import torch

    from ..training.state import seeded, under
    from .network import Network
    from .worlds import published

    with seeded(seed):
        network = Network(settings.width, settings.variant)
    if before is not None:
        network.load_state_dict(under("policy", before))
    return torch, network, published(settings.profiles, settings.units)


def _validation(world: World, settings: Settings) -> Any:
    import numpy as np

    from .validation import Validation

    if not settings.worlds:
        return Validation([(world, _cases(world, settings))], choose=settings.blocks)
    from .elsewhere import elsewhere

    judged = [(world, _cases(world, settings))]
    for unit in settings.units:
        for k, users in enumerate(JUDGED):
            first_seed = VALIDATION + 2**18 + 1000 * k
            other, draw = elsewhere(settings.profiles, unit, first_seed, first_seed, users=users)
            rng = np.random.default_rng(first_seed)
            cases = [replace(draw(rng, 1000), name=f"{unit} elsewhere {k}") for _ in range(settings.validation_seeds)]
            judged.append((other, cases))
    return Validation(judged, choose=settings.blocks)


def _cases(world: World, settings: Settings) -> list[Episode]:
    from gangplan.simulator.ramp import DISTRIBUTIONS

    return [
        world.draw(unit, name, VALIDATION + i, 1000, label=f"{unit} {name}")
        for unit in world.sets
        for name in DISTRIBUTIONS
        for i in range(settings.validation_seeds)
    ]


def _published(world: World) -> Callable[[np.random.Generator], Episode]:
    from gangplan.simulator.ramp import DISTRIBUTIONS

    settings = [(unit, name) for unit in world.sets for name in DISTRIBUTIONS]

    def draw(rng: np.random.Generator) -> Episode:
        unit, name = settings[int(rng.integers(len(settings)))]
        return world.draw(unit, name, TRAINING + int(rng.integers(2**30)), EPISODE)

    return draw


def _anything(world: World) -> Callable[[np.random.Generator], Episode]:
    from .worlds import anything

    names = list(world.sets)

    def draw(rng: np.random.Generator) -> Episode:
        fractions, load, poisson = anything(rng)
        name = names[int(rng.integers(len(names)))]
        seed = TRAINING + int(rng.integers(2**30))
        return world.draw(name, fractions, seed, EPISODE, load=load, poisson=poisson)

    return draw


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


RECIPE = Recipe(
    name="pacml",
    about="how far to split a job that arrives on a RAMP cluster, and on which block of servers it runs",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    export=export,
    data="PAC-ML's five PipeDream profiles and generated networks; distributions A to D, and others",
    seeds=lambda settings, seed: {"training": f"from {TRAINING}", "validation": f"from {VALIDATION}", "run": seed},
)
