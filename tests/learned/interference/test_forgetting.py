"""A ridge regression that forgets."""

from __future__ import annotations

import numpy as np

from gangplan.learned.interference.forgetting import ForgettingRidge


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
