"""How the policy for jobs that slow one another down is fitted, loaded and judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.learned.policy.recipe import Recipe, start
from gangplan.learned.training.stages import Stage
from gangplan.simulator.ground import Maker

from ...interference.ground import Interference
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


def judge(policy: Any, *, case: str = "") -> tuple[list[Interference], Maker, list[str]]:
    """Compare a policy with the rules and the oracles in the true cluster.

    Args:
        policy: the learned one.
        case: by default the one that it was fitted for.
    """
    from ...interference.rivals import baselines

    on = replace(policy.settings, case=case or policy.settings.case)
    return [Interference(on.case, make=on.make)], lambda drawn, seed: policy, list(baselines())


RECIPE = Recipe(
    name=NAME,
    about="where gangs are placed that slow one another down, by speeds that a log tells",
    config=Settings,
    stages=stages,
    load=load,
    judge=judge,
    data="a log of a case of gangplan.systems.interference: who was where, and how fast; training seeds from 2000000",
)
