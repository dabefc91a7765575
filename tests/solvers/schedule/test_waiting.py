"""Prices of jobs that wait: bounds below the best of all orders, stopped jobs included, and any prices are valid."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from gangplan.solvers.schedule.waiting import GpuPrices, Waiting, bound, squashed


def draw(seed: int, most: int = 5) -> Waiting:
    """Return up to five jobs of whole seconds on up to four GPUs, those that run and are never stopped first."""
    rng = np.random.default_rng(seed)
    n, gpus = int(rng.integers(1, most)), int(rng.integers(1, 5))
    need = rng.integers(1, gpus + 1, n)
    stays = (np.cumsum(need) <= gpus) & (rng.random() < 0.5)
    return Waiting(gpus, rng.integers(1, 6, n).astype(float), need, stays)


def preemptive(jobs: Waiting) -> float:
    """Return the least sum of completions if any set of jobs with room runs in each second, by value iteration.

    Whole seconds are enough for a referee: a schedule of these is one, so no bound is above it.
    """
    known: dict[tuple[int, ...], float] = {}

    def least(left: tuple[int, ...]) -> float:
        if not any(left):
            return 0.0
        if left not in known:
            known[left] = np.inf
            for run in product(*((0, 1) if x else (0,) for x in left)):
                stays = all(r or not x or not s for r, x, s in zip(run, left, jobs.stays, strict=True))
                if any(run) and stays and np.dot(run, jobs.need) <= jobs.gpus:
                    rest = tuple(x - r for x, r in zip(left, run, strict=True))
                    known[left] = min(known[left], sum(x > 0 for x in left) + least(rest))
        return known[left]

    return least(tuple(int(x) for x in jobs.left))


@pytest.mark.parametrize("first", [0, 40])
def test_no_bound_is_above_the_best_preemptive_schedule(first: int) -> None:
    """With any steps, from nothing and from prices of another problem, bounds are below what enumeration finds."""
    before: GpuPrices | None = None
    for seed in range(first, first + 40):
        jobs = draw(seed)
        best = preemptive(jobs)
        for steps in (0, 5, 40):
            found, prices = bound(jobs, steps, best, before, 1.5 * (seed % 3))
            assert jobs.left.sum() * (1 - 1e-8) <= found <= best, (seed, steps)
            assert (np.diff(prices.pi) <= 1e-12).all() and (prices.pi >= -1e-12).all()
        before = prices if len(prices.pi) else None


def test_one_gpu_is_tight_but_for_the_grid() -> None:
    """On one GPU the shortest goes first: the bound of the closed prices is the sum of its completions."""
    jobs = Waiting(1, np.array([3.0, 1.0, 2.0]), np.ones(3), np.zeros(3, bool))
    best = min(sum(np.cumsum(jobs.left[list(order)])) for order in permutations(range(3)))
    assert bound(jobs, 100, best)[0] == pytest.approx(best, rel=0.02)


def test_prices_of_before_are_a_better_start() -> None:
    """Without any step the bound from prices just proved is as good as theirs, and better than that of the closed ones.

    Half a minute later, when the shortest jobs have run so long, they still are.
    """
    rng = np.random.default_rng(3)
    left, need = np.minimum(rng.lognormal(8.0, 1.2, 120), 2e5), rng.choice([1, 2, 4, 8, 16], 120)
    jobs = Waiting(64, left, need, np.zeros(120, bool))
    first, prices = bound(jobs, 60, 1.1 * bound(jobs, 0, 0.0)[0])
    assert bound(jobs, 0, first, prices)[0] == pytest.approx(first, rel=1e-6)
    assert bound(jobs, 0, first)[0] < first
    ran = np.where(np.cumsum(np.sort(need)) <= 64, 30.0, 0.0)
    then = jobs._replace(left=np.maximum(left - ran, 1.0))
    assert bound(then, 0, first, prices, 30.0)[0] > bound(then, 0, first)[0]


def test_later_prices_are_means() -> None:
    """What is left after a second of 3, 2, 1 a second is 2, 1; over two seconds its mean, and nothing after."""
    prices = GpuPrices(np.arange(4.0), np.array([3.0, 2.0, 1.0]))
    assert prices.later(1.0, np.array([0.0, 1.0, 2.0])).pi.tolist() == [2.0, 1.0]
    assert prices.later(1.0, np.array([0.0, 2.0, 3.0])).pi.tolist() == [1.5, 0.0]


def test_closed_prices_fall_by_a_share_a_job() -> None:
    """Two jobs of 2 and 4 s on one GPU: 2 wait at first, 1 from 2 s on; between these times prices are means."""
    prices = squashed(Waiting(1, np.array([4.0, 2.0]), np.ones(2), np.zeros(2, bool)))
    assert prices.times.tolist() == [0.0, 2.0, 6.0]
    assert prices.pi.tolist() == [1.5, 0.5]
