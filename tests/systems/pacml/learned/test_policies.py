"""Policies of PAC-ML's cluster by name."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from gangplan.instances import InstanceError
from gangplan.learned.policy.weights import FOLDER
from gangplan.systems.pacml.baselines import InOneBlock
from gangplan.systems.pacml.learned.hindsight import PastPlans
from gangplan.systems.pacml.learned.policies import make_policy


def test_rules_and_plans() -> None:
    """A rule and plans are made from a seed."""
    assert isinstance(make_policy("smallest+best")(0), InOneBlock) and isinstance(make_policy("plans")(0), PastPlans)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is absent")
def test_weights_by_name_file_and_units() -> None:
    """Weights are found by name and by file, and those of the units are `learned`; with plans they have futures."""
    width = make_policy("pacml")(0).settings  # type: ignore[attr-defined]
    assert make_policy(str(FOLDER / "pacml.safetensors"))(0).settings == width  # type: ignore[attr-defined]
    other = make_policy("pacml-as-published")(0).settings  # type: ignore[attr-defined]
    assert make_policy("learned", "as-published")(0).settings == other  # type: ignore[attr-defined]
    assert make_policy("learned+plans")(0)._futures is not None and make_policy("learned")(0)._futures is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "words"),
    [("pacl", "'pacl' is not a rule.* or weights: .*pacml"), ("smallest+plans", "not a rule"), ("", "not a rule")],
)
def test_no_such_policy(name: str, words: str) -> None:
    """What is neither a rule nor weights is told what there is."""
    with pytest.raises(InstanceError, match=words):
        make_policy(name)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is absent")
def test_weights_of_another_problem() -> None:
    """Weights that decide on something else are refused by name."""
    with pytest.raises(InstanceError, match="topdrl' is not pacml"):
        make_policy("topdrl")(0)
