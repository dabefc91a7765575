"""A few changed documents for each reader, command and endpoint; `python -m tests.fuzz` tries as many as one likes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gangplan.instances import InstanceError
from gangplan.scheduler.journal.values import TYPES, decode

from . import mutate
from .targets import TARGETS, drawn, run

FEW = {"traces": 60, "problems": 40, "tables": 40, "configurations": 20, "requests": 15, "observed": 10, "snapshots": 8}
"""Inputs of each target; of others two, and none of those that solve."""


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in ("solves", "certificates", "plans")])
@pytest.mark.filterwarnings("ignore")
def test_changed_documents(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each input is taken or refused, and no other error comes out."""
    (tmp_path / "inputs").mkdir()
    monkeypatch.chdir(tmp_path / "inputs")
    ended = [run(name, drawn(name, 0, number)) for number in range(FEW.get(name, 2))]
    assert "refused" in ended or len(ended) < 10


def test_an_input_is_the_same_again() -> None:
    """An input is told by its target, seed and number; another number is another input."""
    assert drawn("traces", 1, 2) == drawn("traces", 1, 2) != drawn("traces", 1, 3)


def test_changes_are_changes() -> None:
    """Most changed trees differ from what they were made of, which stays as it is."""
    data = {"a": [1, 2.5, "x"], "b": {"c": None}}
    found = [mutate.tree(data, random.Random(seed), []) for seed in range(50)]
    assert sum(x != data for x in found) > 35 and data == {"a": [1, 2.5, "x"], "b": {"c": None}}


@pytest.mark.parametrize(
    "tag", ["cli.app:App", "learned.training.ppo:Ppo", "os:system", "Cluster", "..x:Y", ":", None, 3, []]
)
def test_no_other_type_is_imported(tag: object) -> None:
    """A log names types of the table; of all others nothing is imported."""
    with pytest.raises(InstanceError, match="is no type that a log has"):
        decode({"type": tag})
    assert len(TYPES) == 19
