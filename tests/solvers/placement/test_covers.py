"""What room on nodes costs at least: against enumeration of parts, and of numbers of workers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gangplan.solvers.placement.covers import Covers, combine, fill, steps


def draw(seed: int, rows: int) -> dict[str, np.ndarray]:
    """Return four nodes of a few parts each, a fifth of which block."""
    rng = np.random.default_rng(seed)
    node = np.sort(rng.integers(0, 4, 14))
    return {
        "free": rng.integers(0, 3, (rows, 4)),
        "need": rng.integers(1, 4, rows),
        "most": rng.integers(1, 5, 4),
        "node": node,
        "used": rng.integers(0, 5, (rows, 14)),
        "blocks": rng.random(14) < 0.2,
        "share": rng.integers(0, 9, 14).astype(float),
    }


def enumerated(of: dict[str, np.ndarray]) -> np.ndarray:
    """Return the least cost of workers on each node over all subsets of its parts."""
    least = np.full((4, int(of["most"].max()) + 1), np.inf)
    for n in range(4):
        here = np.flatnonzero(of["node"] == n)
        for out in product((0, 1), repeat=len(here)):
            goes = np.array(out, bool)
            room = (of["free"][:, n] + of["used"][:, here[goes]].sum(axis=1)) // of["need"]
            most = 0 if of["blocks"][here[~goes]].any() else min(int(of["most"][n]), int(room.min()))
            least[n, : most + 1] = np.minimum(least[n, : most + 1], of["share"][here[goes]].sum())
    return least


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("rows", [1, 2])
def test_least_against_enumeration(seed: int, rows: int) -> None:
    """It is exact of one resource, and once sharpened of two; before, and by fractions, it is never above."""
    of, least = draw(seed, rows), enumerated(draw(seed, rows))
    covers, below = Covers(**of), Covers(**of, whole=False)
    assert covers.exact.all() == (rows == 1)
    assert (covers.least <= least + 1e-9).all() and (below.least <= covers.least + 1e-9).all()
    covers.sharpen(np.arange(4))
    assert covers.exact.all() and np.allclose(covers.least, least)
    for n, y in zip(*np.nonzero(np.isfinite(least[:, 1:])), strict=True):
        for each in (covers, below):
            out = np.zeros(14, bool)
            out[each.parts(np.array([n]), np.array([y + 1]))] = True
            assert (of["node"][out] == n).all() and not (of["blocks"] & ~out)[of["node"] == n].any()
            assert ((of["free"][:, n] + of["used"][:, out].sum(axis=1)) // of["need"] >= y + 1).all()
        assert of["share"][covers.parts(np.array([n]), np.array([y + 1]))].sum() == pytest.approx(least[n, y + 1])


@pytest.mark.parametrize("seed", range(60))
def test_workers_against_enumeration(seed: int) -> None:
    """The bound is below the best of all numbers of workers on nodes, the filling above, the programme equal.

    And what reduced costs exclude is in no cheaper one: the theorem at the top of the module.
    """
    rng = np.random.default_rng(seed)
    least = np.cumsum(rng.integers(0, 6, (5, 4)), axis=1).astype(float)
    least[rng.random((5, 4)) < 0.2] = np.inf
    least[:, 0] = np.where(rng.random(5) < 0.8, 0.0, np.inf)
    least = least[np.isfinite(least).any(axis=1)]
    top = int((3 - np.isfinite(least[:, ::-1]).argmax(axis=1)).sum())
    workers = int(rng.integers(1, top + 1)) if top else 0
    if not workers:
        pytest.skip("no node may have a worker")
    rows = np.arange(len(least))
    every = [np.array(y) for y in product(range(4), repeat=len(least)) if sum(y) >= workers]
    best = min(float(least[rows, y].sum()) for y in every)
    bound, price, counts = fill(least, workers)
    cost = float(least[rows, counts].sum())
    assert bound <= best + 1e-9 and counts.sum() >= workers and cost >= best
    slope = steps(least)
    assert (np.diff(np.where(np.isneginf(slope), -1e9, np.where(np.isinf(slope), 1e9, slope)), axis=1) > -1e-9).all()
    exact = combine(least, workers, lambda: False)
    assert exact is not None and exact.sum() >= workers and least[rows, exact].sum() == best
    assert combine(least, workers, lambda: True) is None or (np.isfinite(least).sum(axis=1) == 1).all()
    reduced = least - price * np.arange(4)
    excluded = bound + reduced - reduced.min(axis=1)[:, None] >= cost
    assert not any(least[rows, y].sum() < cost - 1e-9 and excluded[rows, y].any() for y in every)
