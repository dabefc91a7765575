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


def test_one_by_one_is_all_at_once() -> None:
    """Sparse samples one by one, however much weight they gain, and the table at once have the weighted optimum."""
    table, target = drawn(6, 400)
    age = 0.9 ** np.arange(399, -1, -1)
    right = np.linalg.solve((table * age[:, None]).T @ table + 0.5 * np.eye(6), table.T @ (age * target))
    once, single = ForgettingRidge(0.9, 0.5), fed(table, target, 0.9)
    once.grow(6)
    once.add_table(table[:150], target[:150])
    once.add_table(table[150:], target[150:])
    for ridge in (once, single):
        ridge.solve()
        assert np.allclose(ridge.weight, right)
    assert single.gain < 1e9


def test_rounds_reach_what_solving_finds() -> None:
    """Conjugate gradients end where the exact solution is, also after columns were added."""
    table, target = drawn(40, 300)
    ridge, exact = fed(table, target, 0.999), fed(table, target, 0.999)
    for made in (ridge, exact):
        made.grow(42)
        made.add(np.array([0, 41]), np.ones(2), 3.0)
    exact.solve()
    ridge.improve(rounds=100, enough=1e-20)
    assert np.allclose(ridge.weight, exact.weight, atol=1e-6)
