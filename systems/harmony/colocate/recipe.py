"""How the policy for jobs that slow one another down is fitted, loaded and judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage

from .settings import NAME, Settings

if TYPE_CHECKING:
    from gangplan.learned.training.checkpoint import Tensors


def stages(settings: Settings, seed: int) -> list[Stage]:
    """Return the fit to a log, at the end of which the way to place is chosen."""

    def fit(before: Tensors | None) -> Any:
        from .learners import fit, log_of
        from .network import Ensemble

        samples = log_of(settings, seed)
        return fit(start(lambda: Ensemble(samples.setting, settings), seed, before), samples, settings, seed)

    return [Stage("fit", fit, settings.updates, settings.updates)]


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import ColocatePolicy

    return ColocatePolicy.load(path)


def evaluate(policy: Any, seeds: Any, *, case: str = "") -> list[dict[str, Any]]:
    """Return figures of a policy, of the rules and of the oracles in the true cluster, a row for each and each seed.

    Args:
        policy: the learned one.
        seeds: of the cases.
        case: by default the one that it was fitted for.
    """
    from ...interference.evaluate import baselines
    from ...interference.evaluate import evaluate as simulate_all

    on, seeds = replace(policy.settings, case=case or policy.settings.case), list(seeds)
    found = simulate_all({"learned": lambda case: policy, **baselines()}, on.make, seeds)
    return [
        {"policy": name, "case": on.case, "seed": seed, "mean_jct": one.mean_jct[i], "p95_jct": one.p95_jct[i]}
        for name, one in found.items()
        for i, seed in enumerate(seeds)
    ]


RECIPE = Recipe(
    name=NAME,
    about="where gangs are placed that slow one another down, by speeds that a log tells",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    data="a log of a case of gangplan.systems.interference: who was where, and how fast; training seeds from 2000000",
)
