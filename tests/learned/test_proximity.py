"""Policies for TopDRL's cluster by name."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gangplan.instances import InstanceError
from gangplan.learned import policy
from gangplan.learned.proximity import PUBLISHED, make_policy
from gangplan.simulator.proximity import SCORES, Rule


def test_names_say_discipline_and_allocator() -> None:
    """A rule has the discipline that it was tuned to, and `closest`, unless its name says another."""
    assert make_policy("sjf+easy+nearest", 3) == Rule(SCORES["sjf"], "easy", "nearest", 3)
    assert make_policy("least_work+sized") == Rule(SCORES["least_work"], "head", "sized")
    for name in PUBLISHED:
        assert make_policy(name) == Rule(SCORES[name], "overtake", "closest")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sjf+farthest", "'farthest' is not one of head"),
        ("sjf+nearest+easy", "'easy' is not one of"),
        ("shortest", "'shortest' is not one of fcfs"),
        ("gone.safetensors", "gone"),
    ],
)
def test_unknown_names(name: str, words: str) -> None:
    """What is no policy of this cluster is refused, with what there is."""
    with pytest.raises(InstanceError, match=words):
        make_policy(name)


def test_weights_of_another_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights whose policy does not run from a state to the end are refused."""
    monkeypatch.setattr(policy, "recipe", lambda name: SimpleNamespace(load=lambda path: object()))
    with pytest.raises(InstanceError, match="'pacml' decides on another problem"):
        make_policy("pacml")
