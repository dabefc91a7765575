"""Weights for tests: of a network that is not trained, and of one that says something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from gangplan.learned.offline import policy
from gangplan.learned.policy.weights import Card, save
from gangplan.learned.training.network import GraphNetwork
from gangplan.learned.training.offline.lessons import task_of


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, float], Path]:
    """Return what writes weights of an objective to where `solve` looks, the last layer drawn that large."""
    monkeypatch.setattr(policy, "FOLDER", tmp_path)

    def write(objective: str, last: float) -> Path:
        task, settings = task_of(objective), policy.OfflineSettings(width=8, rounds=2)
        torch.manual_seed(0)
        network = GraphNetwork(task.schema(sum(task.scores)), settings.width, settings.rounds)
        torch.nn.init.normal_(network.last.weight, std=last) if last else None
        path = tmp_path / f"{task.name}.safetensors"
        save(path, network.state_dict(), Card(task.name, task.name, settings=asdict(settings)))
        return path

    return write
