"""The interference models that pay in training, one a case, and lanes that run by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gangplan.learned.interference.ensemble import Model

from ..harmony.rewards import Predicted, fitted, logged
from ..interference.cases import TRAINING
from ..interference.rivals import baselines
from ..interference.table import Table
from .episodes import Lane
from .recipe import Settings

_RULES = ("lif", "tetris", "lb", "lif-published", "tetris-published", "lb-published")


def reward_models(settings: Settings, seed: int) -> dict[str, Model]:
    """Return the model that pays in each case, fitted to what its true cluster reported under the rules."""
    found = dict[str, Model]()
    for name in settings.cases:
        cases = [settings.make(name, TRAINING + 100 * seed + at) for at in range(len(_RULES))]
        rules = [baselines()[rule](case) for rule, case in zip(_RULES, cases, strict=True)]
        log = logged(cases, rules, settings.samples, settings.noise, seed)
        found[name] = fitted(settings.reward_model, cases[0], log, settings.samples, seed)
    return found


def episodes(
    settings: Settings, models: Mapping[str, Model], seeds: Sequence[int], *, teach: bool = False
) -> tuple[list[Lane], list[Model]]:
    """Return lanes that run by a model, the cases in turn, and the models."""
    names = [settings.cases[i % len(settings.cases)] for i in range(len(seeds))]
    cases = [settings.make(name, seed) for name, seed in zip(names, seeds, strict=True)]
    each = zip(names, cases, seeds, strict=True)
    lanes = [
        Lane(Predicted(replace(case, truth=models[name])), Table(case, seed), settings.types, teach=teach)
        for name, case, seed in each
    ]
    return lanes, [models[name] for name in names]
