"""The policy: a problem in, plans out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gangplan.instances import InstanceError, StepPlan, StepProblem
from gangplan.instances.arrays import FloatArray
from gangplan.solvers.partition.step.model import Prepared, prepare

from ..gnn import Schema, collate
from ..policy import weights
from ..policy.restore import restore
from .features import Case, case_of
from .network import StepNetwork
from .plans import Found
from .play import plan_of, search
from .schema import BASE, schema
from .settings import Settings

NAME = "step"


def network_of(settings: Settings) -> StepNetwork:
    """Return a network of the size that the settings ask for; its book is empty."""
    return StepNetwork(Schema(*schema(settings.rounds > 0)), settings.width, settings.rounds, settings.book)


class StepPolicy:
    """A network and the list scheduler that listens to it.

    Args:
        network: scores.
        settings: as in the configuration file, for the model card.
    """

    def __init__(self, network: StepNetwork, settings: dict[str, Any] | None = None) -> None:
        self.network, self.settings = network.eval(), settings or {}

    def case(self, p: Prepared) -> Case:
        """Look at a problem; a pass of list scheduling for each setting of the base."""
        return case_of(p, self.network.book[:BASE].numpy(), messages=len(self.network.body.rounds) > 0)

    def scores(self, case: Case) -> FloatArray:
        """Return a score for each setting in the book, float64 (K,)."""
        with torch.no_grad():
            return np.asarray(self.network(collate([case.encoding]))[0].double().numpy())

    def settings_of(self, case: Case) -> FloatArray:
        """Return the settings of the dials for a problem, the best one first, (K, D)."""
        scores = self.scores(case)
        if not np.isfinite(scores).all():
            raise InstanceError("scores", "are not finite: the weights are broken")
        return np.asarray(self.network.book.numpy()[np.argsort(-scores, kind="stable")])

    def search(self, case: Case, samples: int = 1) -> Iterator[Found]:
        """Yield better and better plans, from so many settings; see `gangplan.learned.step.play.search`."""
        yield from search(case, self.settings_of(case)[:samples])

    def plan(self, problem: StepProblem, samples: int = 1) -> StepPlan | None:
        """Return the best plan of the so many best settings; `None` if memory stops all of them."""
        case, best = self.case(prepare(problem)), None
        for found in self.search(case, samples):
            best = found
        return None if best is None else plan_of(case, best[1], best[2])

    def save(self, path: str | Path, card: weights.Card | None = None) -> None:
        """Write weights and a model card."""
        weights.save(path, self.network.state_dict(), card or weights.Card(NAME, NAME, settings=self.settings))

    @classmethod
    def load(cls, path: str | Path) -> StepPolicy:
        """Read what `save` wrote.

        Raises:
            InstanceError: if it is missing, broken or of another policy.
        """
        network, _, card = restore(path, NAME, Settings, network_of)
        return cls(network, card.settings)
