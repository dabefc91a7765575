"""Policies for TopDRL's cluster by name."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from gangplan.instances import InstanceError
from gangplan.systems.topdrl.policies import PUBLISHED, make_policy, weights_of
from gangplan.systems.topdrl.rules import SCORES, Rule
from gangplan.systems.topdrl.suites import suite

policy = import_module("gangplan.learned.training.recipe")  # the package has a function of that name


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


def test_weights_called_like_a_suite_are_preferred(tmp_path: Path) -> None:
    """Weights of the large size decide on the large suite, and those without a suite on all others."""
    for name in ("topdrl", "topdrl-large"):
        (tmp_path / f"{name}.safetensors").touch()
    found = [weights_of("topdrl", ground, tmp_path) for ground in (suite("large"), suite("small"), None)]
    assert [path.stem for path in found if path] == ["topdrl-large", "topdrl", "topdrl"]
    assert weights_of("gnn", suite("small"), tmp_path) is None


def test_what_a_learned_policy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are those of the suite; the guard may be left out, the allocator be another."""
    made = SimpleNamespace(finish=None, step=None, guarded=True, allocator=3)
    monkeypatch.setattr(policy, "recipe", lambda name: SimpleNamespace(load=lambda path: made, torch=True))
    ground = replace(suite("small"), step=600.0)
    assert make_policy("pacml", suite=ground) is made and made.step == 600.0 and made.guarded
    assert make_policy("pacml-unguarded") is made and not made.guarded
    assert make_policy("pacml+sized") is made and made.allocator == 1
    with pytest.raises(InstanceError, match="'farthest' is no allocator"):
        make_policy("pacml+farthest")


def test_what_a_learned_policy_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that is not there cannot be left out, and without torch weights are refused."""
    made = SimpleNamespace(finish=None)
    monkeypatch.setattr(policy, "recipe", lambda name: SimpleNamespace(load=lambda path: made, torch=True))
    with pytest.raises(InstanceError, match="no guard"):
        make_policy("pacml-unguarded")
    monkeypatch.setattr(policy, "find_spec", lambda name: None)
    with pytest.raises(InstanceError, match="'pacml' needs torch"):
        make_policy("pacml")


def test_weights_of_another_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights whose policy does not run from a state to the end are refused."""
    monkeypatch.setattr(policy, "recipe", lambda name: SimpleNamespace(load=lambda path: object(), torch=True))
    with pytest.raises(InstanceError, match="'pacml' decides on another problem"):
        make_policy("pacml")
