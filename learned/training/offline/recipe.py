"""How policies for whole problems are trained, loaded and judged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from gangplan.instances.generators.families import SPLITS

from ...offline import placement, throughput
from ...offline.policy import OfflinePolicy, OfflineSettings
from ...offline.task import OfflineTask
from ..recipe import Recipe
from ..trainer import staged


class OfflineRecipe(Recipe):
    """A recipe whose policy is judged by the gap to the best plan of the exact methods."""

    __slots__ = ()

    def options(self, policy: Any) -> list[str]:
        """Return those of `evaluate`: ops of the largest problems, and seconds of the exact methods."""
        return ["ops", "seconds"]

    def evaluate(self, policy: Any, seeds: Sequence[int], **options: Any) -> list[dict[str, Any]]:
        """Return a row of gaps for each family and seed."""
        from .lessons import judged

        return judged(policy, seeds, **options)


def recipe_of(task: OfflineTask, about: str) -> OfflineRecipe:
    """Return the recipe of a problem's policy."""
    return OfflineRecipe(
        name=task.name,
        about=about,
        config=OfflineSettings,
        stages=staged(
            f"gangplan.learned.training.offline.training:{task.objective}",
            lambda of: {
                "imitation": (of.imitation_updates, of.validate_every),
                "rl": (of.rl_updates, of.validate_every),
            },
        ),
        load=partial(OfflinePolicy.load, task),
        data="random problems of gangplan.instances.generators.families, optima that exact methods prove",
        seeds={split: f"from {SPLITS[split]}" for split in ("train", "validation")},
    )


THROUGHPUT = recipe_of(
    throughput.TASK, "where along the pipeline each op stands: orders along which an op graph is cut"
)
PLACEMENT = recipe_of(
    placement.TASK, "which gangs share nodes, and which fill what others leave: what gangs are inserted by"
)
