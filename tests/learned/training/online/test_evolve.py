"""The search for a rule: paired runs, the same curve after a stop, and words that are what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.learned.training.online import evolve
from gangplan.learned.training.online.evolve import Evolution, Runs, search
from gangplan.simulator.gangs.formula import LENGTH, ONE, PATIENT, TERMS
from gangplan.simulator.gangs.traffic import TRAIN, VALIDATE

pytestmark = pytest.mark.usefixtures("one_thread")


def small() -> Evolution:
    """Return a search on two small grounds, judged by another."""
    return Evolution(TRAIN[:2], VALIDATE[:1], 0)


def test_runs_are_paired_with_patient() -> None:
    """`Patient` is level with itself on each ground; a rule that never minds places is not."""
    runs = Runs(TRAIN[:2], [1, 2, 3])
    assert runs.score(PATIENT) == 0.0 and (runs.logs(PATIENT) == 0).all()
    careless = PATIENT.copy()
    careless[ONE] = 9.0
    rows = runs.rows(careless)
    assert [x["ground"] for x in rows] == [x.name for x in TRAIN[:2]] and all(x["above"] > 0.1 for x in rows)
    assert runs.score(careless) > 0.1


def test_the_same_curve() -> None:
    """What was saved after two updates goes on as if it had not been."""
    first, second = small(), small()
    for step in (1, 2):
        first.update(step)
    tensors, plain = first.state()
    second.load({name: x.clone() for name, x in tensors.items()}, plain)
    assert [first.update(step) for step in (3, 4)] == [second.update(step) for step in (3, 4)]
    assert first.validate() == second.validate() and np.array_equal(first.formula, second.formula)


def test_it_finds_what_is_better() -> None:
    """In some updates a formula that is ahead of `Patient` on a ground that it was not chosen on."""
    evolution = small()
    for step in range(1, 13):
        evolution.update(step)
    figures = evolution.validate()
    assert figures["score"] < -0.01 and figures["terms"] == np.count_nonzero(evolution.formula)
    assert Runs(VALIDATE[:1], range(500, 506)).score(evolution.formula) < -0.01


def test_terms_that_are_worth_nothing_are_left_out() -> None:
    """A weight too small to change a decision does not stand in the formula; one that counts does."""
    evolution = small()
    evolution._mean = PATIENT.copy()
    evolution._mean[LENGTH], evolution._mean[ONE], evolution._mean[-1] = -0.7, -3.0, 1e-9
    evolution.validate()
    assert evolution.formula[LENGTH] and not evolution.formula[-1]


def test_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is resumed ends as what ran through; what is returned are the weights by name, the words, and fresh runs."""
    monkeypatch.setattr(evolve, "TRAIN", TRAIN[:2])
    monkeypatch.setattr(evolve, "VALIDATE", VALIDATE[:1])
    whole = search(tmp_path / "a", updates=3)
    search(tmp_path / "b", updates=1)
    parts = search(tmp_path / "b", updates=3, resume=True)
    assert {**whole, "seconds": 0} == {**parts, "seconds": 0}
    assert set(whole["weights"]) <= set(TERMS) and whole["formula"][0].startswith("key = log seconds")
    assert [(x["ground"], x["runs"]) for x in whole["grounds"]] == [("powers-48", evolve.SHOWN)]
    with pytest.raises(InstanceError, match="holds a run"):
        search(tmp_path / "a", updates=3)
    with pytest.raises(InstanceError, match="minutes"):
        search(tmp_path / "c", minutes=-1.0)
