"""Policies for whole problems: how they may be configured, are loaded, and decide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import Checked, FloatArray, limited
from gangplan.solvers.run import Run

from ..graph.compiled import CompiledNetwork, network_of, score, shapes
from ..policy.weights import FOLDER, load_for, match
from .task import OfflineTask, drawn, solve_by


@dataclass(frozen=True, slots=True)
class OfflineSettings(Checked):
    """Hyper-parameters of a policy and its training.

    Attributes:
        width, rounds, messages: of the network, see `GraphNetwork`.
        ops: at most so many, or jobs, or nodes, in a problem that is learned from.
        lessons, validation: problems with labels to learn from and to validate on, by turns of each family.
        larger: problems of ten times the size for the policy gradient, an eighth as many for validation; by default it
            has those of imitation.
        label_seconds: of the exact methods for a label.
        cache: folder of labels, made once; none by default.
        processes: that make them.
        minibatch: problems of an update.
        imitation_updates, imitation_rate: of imitation of proved optima.
        rl_updates, rl_rate, cap: of the policy gradient on the objective, plans more than `cap` above the best counting
            as that.
        noise, draws: deviation of the scores that are drawn, and how many pairs of them for a gradient.
        validate_every: updates from one validation to the next.
    """

    RETIRED: ClassVar[frozenset[str]] = frozenset({"rules", "temperature"})

    width: int = limited(32, positive=True)
    rounds: int = limited(3, positive=True)
    messages: bool = True
    ops: int = limited(100, least=4)
    lessons: int = limited(2000, positive=True)
    validation: int = limited(240, positive=True)
    larger: int = 0
    label_seconds: float = limited(0.3, positive=True)
    cache: str = limited("", empty=True)
    processes: int = limited(1, positive=True)
    minibatch: int = limited(64, positive=True)
    imitation_updates: int = 400
    imitation_rate: float = limited(2e-3, positive=True)
    rl_updates: int = 200
    rl_rate: float = limited(1e-3, positive=True)
    cap: float = limited(0.5, positive=True)
    noise: float = limited(0.3, positive=True)
    draws: int = limited(8, positive=True)
    validate_every: int = limited(100, positive=True)


@dataclass(frozen=True, slots=True)
class OfflinePolicy:
    """A network that scores the items of a problem, as compiled code; `about` is what its card says."""

    task: OfflineTask
    network: CompiledNetwork
    settings: OfflineSettings
    about: str = ""

    @classmethod
    def load(cls, task: OfflineTask, path: Path) -> OfflinePolicy:
        """Read weights, without torch, see `load_for`."""
        tensors, card, settings = load_for(task.name, OfflineSettings, path)
        schema = task.schema(sum(task.scores))
        match(tensors, shapes(schema, settings.width, settings.rounds, settings.messages), path)
        return cls(task, network_of(schema, tensors), settings, card.about)

    def choose(self, prepared: Any, seed: int = 0) -> list[FloatArray]:
        """Return what the network says, and scores drawn around it; around 0 where that is no number."""
        scores = np.asarray(score(self.task.graph(prepared), self.network), np.float64)
        scores = scores if np.isfinite(scores).all() else np.zeros_like(scores)
        return drawn(scores, self.settings.noise, seed)


@lru_cache(maxsize=8)
def _loaded(task: OfflineTask, path: Path, _changed: int) -> OfflinePolicy:
    return OfflinePolicy.load(task, path)


def solve_with(task: OfflineTask, run: Run, prepared: Any) -> None:
    """Offer the plans of the network that comes with the package."""
    path = FOLDER / f"{task.name}.safetensors"
    if not path.is_file():
        raise InstanceError("weights", "are missing", str(path))
    policy = _loaded(task, path, path.stat().st_mtime_ns)
    run.note(f"{task.name}: {policy.about}")
    solve_by(task, run, prepared, policy.choose)
