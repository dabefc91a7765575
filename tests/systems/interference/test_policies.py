"""Policies by name: rules, oracles, weights of a case before those of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.instances import InstanceError
from gangplan.learned.policy.weights import named
from gangplan.systems.interference.cases import poisson
from gangplan.systems.interference.greedy import Greedy
from gangplan.systems.interference.policies import make_policy


def test_oracles_know_the_truth() -> None:
    """What a name makes for a case decides there."""
    case = poisson(0, jobs=4)
    assert isinstance(make_policy("oracle-patient")(case), Greedy)


def test_weights_of_a_case_go_first(tmp_path: Path) -> None:
    """`harmony-ps` before `harmony` in the case `ps`, `harmony` elsewhere, nothing where there are none."""
    for name in ("harmony", "harmony-ps"):
        (tmp_path / f"{name}.safetensors").touch()
    found = [named("harmony", case, tmp_path) for case in ("ps", "ring")]
    assert [x.stem for x in found if x is not None] == ["harmony-ps", "harmony"]
    assert named("ours", "ps", tmp_path) is None


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    """The policy is named, and those that there are."""
    with pytest.raises(InstanceError, match="'gone' is not one of lif"):
        make_policy("gone", folder=tmp_path)
