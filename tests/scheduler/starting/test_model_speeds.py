"""Speeds of jobs beside others, learned by the names of their models."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.scheduler.starting.model_speeds import TYPES, BesideModel, ForgettingRidge, Spot


def spot(model: BesideModel, name: str, **beside: float) -> Spot:
    """Return a job of one GPU on node 0, beside so many GPUs of others by model."""
    kind, others = model.kind(name), {model.kind(other): gpus for other, gpus in beside.items()}
    held = np.zeros(len(model.pair))
    held[list(others)] = list(others.values())
    return Spot(kind, 1, [0], held)


def taught(hurts: float = 2.0, reports: int = 120, forget: float = 0.99) -> BesideModel:
    """Return a model of a and b, which take `hurts` times as long beside one another, in units of their own."""
    model = BesideModel(1, forget)
    for _ in range(reports):
        model.report(spot(model, "a"), 100.0)
        model.report(spot(model, "b"), 0.01)
        model.report(spot(model, "a", b=1), 100.0 / hurts)
        model.report(spot(model, "b", a=1), 0.01 / hurts)
        model.report(spot(model, "a", a=1), 100.0)
    model.refresh()
    return model


def slowdown(model: BesideModel, name: str, other: str) -> float:
    """Return how many times as long a model takes beside another, by what was learned."""
    return float(model.slowdown[model.kinds[name], model.kinds[other]])


def test_it_learns_who_hurts_whom() -> None:
    """Pairs that were reported are told apart, whatever the units, and it is nearer than mean speeds."""
    model = taught()
    assert slowdown(model, "a", "b") == pytest.approx(2.0, rel=0.05)
    assert slowdown(model, "b", "a") == pytest.approx(2.0, rel=0.05)
    assert slowdown(model, "a", "a") == pytest.approx(1.0, abs=0.05)
    assert model.trusted
    assert model.report(spot(model, "a", b=1), 50.0) == pytest.approx(0.5, rel=0.05)


def test_it_is_not_trusted_where_neighbours_tell_nothing() -> None:
    """Nothing is used before there are reports, or where speeds do not depend on who is beside."""
    assert not BesideModel(2, 0.99).trusted
    assert not taught(reports=2).trusted
    model, rng = BesideModel(2, 0.99), np.random.default_rng(0)
    for speed in np.exp(0.1 * rng.standard_normal(400)):
        model.report(spot(model, "a", b=float(rng.integers(3))), float(speed))
        model.refresh()
    assert not model.trusted


def test_it_forgets() -> None:
    """After a change it comes to what is reported now; a model that forgets nothing is between both."""
    sure, slow = (taught(forget=forget) for forget in (0.99, 1.0))
    for model in (sure, slow):
        for _ in range(60):
            model.report(spot(model, "a", b=1), 100.0)
        model.refresh()
    assert slowdown(sure, "a", "b") < 1.15 < slowdown(slow, "a", "b")


def test_it_comes_back_from_json() -> None:
    """What was saved predicts the same and goes on learning alike."""
    model = taught()
    again = BesideModel.load(json.loads(json.dumps(model.save())), 1)
    for made in (model, again):
        made.report(spot(made, "a", b=1), 90.0)
        made.report(spot(made, "c", b=1), 7.0)
        made.refresh()
    assert np.allclose(model.pair, again.pair, atol=1e-3)
    assert model.errors[1] == pytest.approx(again.errors[1], rel=1e-3)


@pytest.mark.parametrize("field", ["weight", "moments", "at", "products", "unit", "usual", "errors", "kinds", "forget"])
@pytest.mark.parametrize("value", [float("nan"), [1e400], [[0, 0, -1, 0]], [-1], 2.0, [None], "x"])
def test_what_is_no_model_is_refused(field: str, value: object) -> None:
    """Any field with a value that cannot be is an error of a kind that the snapshot reports."""
    saved = taught(reports=3).save() | {field: value}
    with pytest.raises((InstanceError, TypeError, ValueError, IndexError)):
        BesideModel.load(saved, 1)


def test_there_may_be_more_models_than_columns() -> None:
    """Further models share the last number, and columns stay few."""
    model = BesideModel(1, 0.99)
    numbers = [model.kind(f"m{i}") for i in range(3 * TYPES)]
    assert max(numbers) == TYPES - 1 == numbers[-1]
    assert model.pair.shape == (TYPES, TYPES)


def drawn(size: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of which most is 0, and targets."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(samples, size)) * (rng.random((samples, size)) < 0.3)
    return table, table @ rng.normal(size=size) + 0.1 * rng.normal(size=samples)


def fed(table: np.ndarray, target: np.ndarray, forget: float) -> ForgettingRidge:
    """Return a regression that learned the rows one by one, from the columns that are not 0."""
    ridge = ForgettingRidge(forget, 0.5)
    ridge.grow(table.shape[1])
    for row, y in zip(table, target, strict=True):
        columns = np.flatnonzero(row)
        ridge.add(columns, row[columns], float(y))
    return ridge


def solved(ridge: ForgettingRidge) -> np.ndarray:
    """Return the coefficients that its sums say are the best."""
    return np.linalg.solve(ridge.products / ridge.gain + 0.5 * np.eye(len(ridge.moments)), ridge.moments / ridge.gain)


def test_one_by_one_is_all_at_once() -> None:
    """Sparse samples one by one, however much weight they gain, have the weighted optimum of the whole table."""
    table, target = drawn(6, 400)
    age = 0.9 ** np.arange(399, -1, -1)
    right = np.linalg.solve((table * age[:, None]).T @ table + 0.5 * np.eye(6), table.T @ (age * target))
    ridge = fed(table, target, 0.9)
    assert np.allclose(solved(ridge), right) and ridge.gain < 1e9


def test_rounds_reach_what_solving_finds() -> None:
    """Conjugate gradients end where the exact solution is, also after columns were added."""
    table, target = drawn(40, 300)
    ridge = fed(table, target, 0.999)
    ridge.grow(42)
    ridge.add(np.array([0, 41]), np.ones(2), 3.0)
    ridge.improve(rounds=100, enough=1e-20)
    assert np.allclose(ridge.weight, solved(ridge), atol=1e-6)
