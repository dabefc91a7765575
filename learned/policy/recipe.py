"""Recipes: how each policy is trained, loaded and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError

from ..training.stages import Stage

RECIPES: dict[str, str] = {
    "pacml": "gangplan.learned.ramp.recipe",
    "schedule": "gangplan.learned.schedule.recipe",
}
"""Policies by name: the module that holds its `RECIPE`. Importing one loads no heavy package."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one policy is made and used.

    Attributes:
        name: of the policy.
        about: what it decides, a phrase.
        config: a frozen dataclass, the fields of which are what a configuration may say besides ``policy``.
        stages: from configuration, device and seed to the stages of training.
        load: from a file of weights to the policy.
        evaluate: from policy, seeds and options of its own, which have defaults, to rows of figures.
        export: from a policy and a path to the ONNX files written, None if it has no such form.
        data: what it is trained on, for the model card; a phrase.
        seeds: from configuration and seed to the seeds of training and of validation, for the model card.
        accelerated: whether a part of the training can run on another device than the processor.
    """

    name: str
    about: str
    config: type[Any]
    stages: Callable[[Any, str, int], list[Stage]]
    load: Callable[[Path], Any]
    evaluate: Callable[..., list[dict[str, Any]]]
    export: Callable[[Any, Path], Sequence[Path]] | None = None
    data: str = ""
    seeds: Callable[[Any, int], dict[str, Any]] = lambda config, seed: {"training": seed}
    accelerated: bool = False


def recipe(name: str) -> Recipe:
    """Return the recipe of a policy.

    Raises:
        InstanceError: if there is none of that name.
    """
    if name not in RECIPES:
        raise InstanceError("policy", f"{name!r} is not one of {', '.join(RECIPES) or '(none in this version)'}")
    found: Recipe = import_module(RECIPES[name]).RECIPE
    return found
