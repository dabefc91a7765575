"""Imitation learns on a tiny scenario, resume exactly, and settings that make no sense are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.recipe import train_policy
from gangplan.systems.pacml.learned import learners
from gangplan.systems.pacml.learned.learners import Validation
from gangplan.systems.pacml.learned.network import BlockNetwork
from gangplan.systems.pacml.learned.policy import RampPolicy
from gangplan.systems.pacml.learned.recipe import RECIPE, PacmlSettings
from gangplan.systems.pacml.learned.teacher import label
from gangplan.systems.pacml.learned.values import Scenario, published
from gangplan.systems.pacml.learned.worth import SHAPE, Teacher

TINY = PacmlSettings(width=16, minibatch=64, imitation_rate=5e-3)


def test_shorter_sets(data: Path) -> None:
    """More sets have the same models for fewer steps, others in each, and the published set stays as it is."""
    plain = published(data / "pipedream", ["as-published"])
    more = published(data / "pipedream", ["as-published"], shorter=2)
    assert list(more.sets) == ["as-published", "as-published shorter 0", "as-published shorter 1"]
    share = np.array([[kind.sequential for kind in types] for types in more.sets.values()])
    assert (share[0] == [kind.sequential for kind in plain.types]).all()
    share = share[1:] / share[0]
    assert ((share > 0.1) & (share <= 1)).all()
    assert (share[0] != share[1]).any()


def network() -> BlockNetwork:
    """Return the same random weights every time."""
    torch.manual_seed(0)
    return BlockNetwork(TINY.width)


def imitation(small: Scenario, updates: int = 60) -> Imitation:
    """Return a learner of what a table says of one episode."""
    (name,) = small.sets
    table = np.zeros(SHAPE) + 0.01 * np.arange(SHAPE[2])
    made = label(small, small.draw(name, "D", 0, 200), Teacher(small.tables, small.times, table), 1.0)
    judge = Validation(small, [small.draw(name, "A", 9, 100)])
    return learners.imitation(network(), [[made]], judge, TINY, TINY.imitation_rate, updates, 0)


def test_resumes_exactly(small: Scenario) -> None:
    """Two updates, saved, loaded into a fresh learner, and two more: digit for digit those of four in a row."""
    whole, part = imitation(small), imitation(small)
    figures = [whole.update(step) for step in range(1, 5)]
    assert [part.update(step) for step in (1, 2)] == figures[:2]
    tensors, plain = part.state()
    tensors = {key: value.clone() for key, value in tensors.items()}
    part.update(3)  # what was saved is not touched by what comes after
    other = imitation(small)
    other.update(1)
    other.load(tensors, plain)
    assert [other.update(step) for step in (3, 4)] == figures[2:]
    for key, value in whole.state()[0].items():
        assert torch.equal(value, other.state()[0][key]), key
    assert whole.validate() == other.validate()


def test_imitation_learns(small: Scenario) -> None:
    """The loss falls by a quarter in 60 updates."""
    learner = imitation(small)
    loss = [learner.update(step)["loss"] for step in range(1, 61)]
    assert np.mean(loss[-10:]) < 0.75 * np.mean(loss[:3])


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"width": 0}, "width"),
        ({"rounds": 0}, "rounds"),
        ({"temperature": -1.0}, "temperature"),
        ({"units": ()}, "units"),
        ({"planned": ("E",)}, "planned"),
        ({"planned": ("D",), "blocks": False}, "planned"),
        ({"units": ("physical", "physical")}, "units"),
    ],
)
def test_bad_settings(values: dict[str, Any], field: str) -> None:
    """Settings that make no sense are refused by name."""
    with pytest.raises(InstanceError) as error:
        PacmlSettings(**values)
    assert error.value.field == field


def test_stages() -> None:
    """Imitation comes first; the correction may be left out."""
    assert [x.name for x in RECIPE.stages(TINY, 0)] == ["imitation", "correction"]
    assert [x.name for x in RECIPE.stages(replace(TINY, corrected_updates=0), 0)] == ["imitation"]


def test_trained_from_nothing(data: Path, tmp_path: Path) -> None:
    """Teachers, imitation and correction make weights that decide, with and without a choice of the block."""
    small = {"labels": 60, "searched": 20, "planned_labels": 20, "corrected": 20, "rounds": 1, "validation_seeds": 1}
    more = {"imitation_updates": 3, "planned_corrected": 20, "corrected_updates": 2, "width": 8, "minibatch": 8}
    more["processes"] = 1
    for blocks in (True, False):
        config = tmp_path / f"{blocks}.toml"
        own = {"policy": "pacml", "profiles": str(data / "pipedream"), "units": ["as-published"], "blocks": blocks}
        table = {**own, "planned": ["D"] * blocks, **small, **more}
        config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items()))
        trained = train_policy(config, tmp_path / str(blocks))
        assert trained.weights is not None and trained.card is not None
        assert 0 < trained.card.validation["score"] < 1
        assert RampPolicy.load(trained.weights).settings.blocks is blocks
