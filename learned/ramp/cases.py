"""The cases that the PAC-ML policy is judged on and those that PPO trains on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.simulator.ramp import DISTRIBUTIONS

from .settings import Settings
from .validation import Validation
from .worlds import Episode, World, anything

VALIDATION, TRAINING = 1_000_000, 2_000_000
"""Where the seeds of cases begin; those below a million are for tests."""

EPISODE = 2000


def validation(world: World, settings: Settings) -> Validation:
    """Return what judges a network: the published settings."""
    return Validation([(world, _cases(world, settings))], choose=settings.blocks)


def _cases(world: World, settings: Settings) -> list[Episode]:
    return [
        world.draw(unit, name, VALIDATION + i, 1000, label=f"{unit} {name}")
        for unit in world.sets
        for name in DISTRIBUTIONS
        for i in range(settings.validation_seeds)
    ]


def published_cases(world: World) -> Callable[[np.random.Generator], Episode]:
    """Return what draws episodes of the published settings."""
    settings = [(unit, name) for unit in world.sets for name in DISTRIBUTIONS]

    def draw(rng: np.random.Generator) -> Episode:
        unit, name = settings[int(rng.integers(len(settings)))]
        return world.draw(unit, name, TRAINING + int(rng.integers(2**30)), EPISODE)

    return draw


def any_cases(world: World) -> Callable[[np.random.Generator], Episode]:
    """Return what draws episodes of other users and loads."""
    names = list(world.sets)

    def draw(rng: np.random.Generator) -> Episode:
        fractions, load, poisson = anything(rng)
        name = names[int(rng.integers(len(names)))]
        seed = TRAINING + int(rng.integers(2**30))
        return world.draw(name, fractions, seed, EPISODE, load=load, poisson=poisson)

    return draw
