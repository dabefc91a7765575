"""How policies for op graphs may be configured, are trained, loaded and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.lazy import on_demand
from gangplan.solvers.method import suite

from ..policy.recipe import Recipe
from ..policy.settings import RecipeSettings, build, limited
from ..policy.weights import FOLDER, arrays, match
from ..training.trainer import Step, staged
from .task import Candidate, Task, Told, candidates, solve_by

if TYPE_CHECKING:
    from gangplan.solvers.run import Run

    from ..graph.compiled import Network

_COMPILED, _GRAPHS = on_demand("gangplan.learned", "graph.compiled offline.graphs")
FAMILIES = ("layered", "fork_join", "series_parallel", "pipeline")


@dataclass(frozen=True, slots=True)
class OfflineSettings(RecipeSettings):
    """Hyper-parameters of a policy and its training.

    Attributes:
        width, rounds, messages: of the network, see `GraphNetwork`.
        ops: at most so many in a problem that is learned from.
        lessons, validation: problems with labels to learn from and to validate on, by turns of each family.
        label_seconds: of the exact methods for a label.
        cache: folder of labels, which are made once; none by default.
        processes: that make labels.
        imitation_updates, imitation_rate, minibatch: of imitation, in problems.
        rl_updates, rl_rate, rl_problems, samples: of the policy gradient; problems in an update and plans of each.
        rl_spread: how far these are drawn, in terms of those of a solve.
        validate_every: updates from one validation to the next.
    """

    width: int = limited(32, least=1)
    rounds: int = limited(3, least=1)
    messages: bool = True
    ops: int = limited(100, least=4)
    lessons: int = limited(2000, least=1)
    validation: int = limited(80, least=1)
    label_seconds: float = limited(0.3, above=0)
    cache: str = ""
    processes: int = limited(1, least=1)
    imitation_updates: int = limited(1500, least=0)
    imitation_rate: float = limited(2e-3, above=0)
    minibatch: int = limited(32, least=1)
    rl_updates: int = limited(1500, least=0)
    rl_rate: float = limited(1e-3, above=0)
    rl_problems: int = limited(32, least=1)
    samples: int = limited(16, least=2)
    rl_spread: float = limited(0.3, above=0)
    validate_every: int = limited(100, least=1)

    def __post_init__(self) -> None:
        RecipeSettings.__post_init__(self)
        if not (self.imitation_updates or self.rl_updates):
            raise InstanceError("rl_updates", "is 0, as is imitation_updates: nothing is trained")


@dataclass(frozen=True, slots=True)
class OfflinePolicy:
    """A network that plans for op graphs, as compiled code."""

    task: Task
    network: Network
    settings: OfflineSettings

    @classmethod
    def load(cls, task: Task, path: Path) -> OfflinePolicy:
        """Read weights, without torch.

        Raises:
            InstanceError: if they are missing, broken or of another policy.
        """
        tensors, card = arrays(path)
        if card.policy != task.name:
            raise InstanceError("policy", f"{card.policy!r} is not {task.name}", str(path))
        try:
            settings = build(OfflineSettings, card.settings)
        except InstanceError as error:
            raise error.within("settings").of(str(path)) from None
        schema = _GRAPHS.schema(task.outputs)
        match(tensors, _COMPILED.shapes(schema, settings.width, settings.rounds, settings.messages), path)
        return cls(task, _COMPILED.network_of(schema, tensors), settings)

    def told(self, split: Any) -> Told:
        """Return the scores of the ops."""
        graph = _GRAPHS.graph(split)
        return Told(np.asarray(_COMPILED.score(graph, self.network), np.float64), _GRAPHS.basis(graph))

    def candidates(self, prepared: Any, samples: int, seed: int = 0) -> list[Candidate]:
        """Return the plan of the scores, those of samples around them, and what these have in common."""
        decoder = self.task.decoder(prepared)
        assert decoder is not None
        rng = np.random.default_rng(seed)
        return list(candidates(self.task, decoder, self.told(self.task.split(prepared)), rng, samples))


@lru_cache(maxsize=8)
def _loaded(task: Task, path: Path, _changed: int) -> OfflinePolicy:
    return OfflinePolicy.load(task, path)


def solve_with(task: Task, run: Run, prepared: Any) -> None:
    """Offer the plans of the network that comes with the package."""
    path = FOLDER / f"{task.name}.safetensors"
    if not path.is_file():
        raise InstanceError("weights", "are missing", str(path))
    policy = _loaded(task, path, path.stat().st_mtime_ns)
    solve_by(task, run, prepared, policy.told)


def kernels_of(objective: str, name: str) -> tuple[Any, ...]:
    """Return what a policy calls of compiled code, its decoder as the method of that name."""
    decoding = suite(objective).methods[name].kernels
    return (*(decoding() if decoding else ()), _COMPILED.score.find(), _GRAPHS.paths.find())


class OfflineRecipe(Recipe):
    """A recipe whose policy is judged by the gap to the best plan of the exact methods."""

    __slots__ = ()

    def evaluate(self, policy: Any, seeds: Sequence[int], **options: Any) -> list[dict[str, Any]]:
        """Return a row of gaps for each family and seed."""
        from .lessons import judged

        return judged(policy, seeds, **options)


def _judge(policy: Any, *, ops: int = 100, seconds: float = 1.0) -> Any:
    """Declare the options of `learn eval`: ops of the largest problems, and seconds of the exact methods."""


def recipe_of(task: Task, about: str) -> OfflineRecipe:
    """Return the recipe of a problem's policy."""
    return OfflineRecipe(
        name=task.name,
        about=about,
        config=OfflineSettings,
        stages=staged(
            f"gangplan.learned.offline.training:{task.objective}",
            lambda of: [
                Step("imitation", of.imitation_updates, of.validate_every),
                Step("rl", of.rl_updates, of.validate_every),
            ],
        ),
        load=partial(OfflinePolicy.load, task),
        judge=_judge,
        data="random op graphs of gangplan.instances.generators.families, plans of gangplan's exact methods",
    )
