"""Trainers: stages are made as declared, of one trainer, each network from the stage before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned.training.trainer import Trainer, staged


class Told(Trainer[Any]):
    """Notes down what it is asked for."""

    made = 0

    def __init__(self, settings: Any, seed: int) -> None:
        super().__init__(settings, seed)
        Told.made += 1

    def network(self) -> torch.nn.Module:
        """Return a layer of the settings' width."""
        return torch.nn.Linear(1, self.settings.width)

    def imitation(self, network: torch.nn.Module, turn: int = -1) -> Any:
        """Return what it got."""
        return self, network, turn


def test_stages() -> None:
    """Stages without updates are left out, all share a trainer, and a number after a hyphen is handed on."""
    steps = {"imitation": (3, 0), "rl": (0, 5), "imitation-1": (4, 2)}
    stages = staged(f"{__name__}:Told", lambda of: steps)(SimpleNamespace(width=2), 7)
    assert [(x.name, x.updates, x.validate_every) for x in stages] == [("imitation", 3, 1), ("imitation-1", 4, 2)]
    Told.made = 0
    first: Any = stages[0].make(None)
    second: Any = stages[1].make({f"policy.{name}": x + 1 for name, x in first[1].state_dict().items()})
    assert first[0] is second[0] and first[0].seed == 7 and Told.made == 1
    assert (first[2], second[2]) == (-1, 1)
    assert torch.equal(second[1].weight, first[1].weight + 1)


def test_something_is_trained() -> None:
    """A training of which no stage has updates is refused."""
    steps = {"imitation": (0, 1), "rl": (0, 5)}
    with pytest.raises(InstanceError, match="updates: of imitation, rl are 0: nothing is trained"):
        staged(f"{__name__}:Told", lambda of: steps)(SimpleNamespace(width=2), 7)


def test_first_weights_are_of_the_seed() -> None:
    """The same seed draws the same first weights, whatever torch drew before, and another draws others."""
    make = staged(f"{__name__}:Told", lambda of: {"imitation": (1, 1)})
    found = []
    for seed in (0, 0, 1):
        torch.rand(3)
        learner: Any = make(SimpleNamespace(width=2), seed)[0].make(None)
        found.append(learner[1].weight)
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
