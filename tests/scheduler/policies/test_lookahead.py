"""The lookahead: what a rollout tells, how far seconds count, and what a stop must be worth."""

from __future__ import annotations

import numpy as np
import pytest

import gangplan.scheduler.policies.lookahead as ahead
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler
from gangplan.scheduler.policies.lookahead import ORDERS, Lookahead, RolloutStart, rollout

FLEET = Fleet.regular(racks=1, nodes=1, gpus=4)


def played(left: list[float], need: list[int], price: list[float], running: list[bool], order: float) -> list[float]:
    """Return when each job is done on four GPUs, nobody held up by a reservation."""
    scene = RolloutStart(4, np.array(left), np.array(need), np.array(price), np.array(running))
    return rollout(scene, False, order).tolist()


def test_rollout_tells_when_each_job_is_done() -> None:
    """Two of 4 GPUs go one after the other, the shorter first; one that needs more than there are is never done."""
    assert played([30.0, 10.0, 5.0], [4, 4, 8], [1.0] * 3, [False] * 3, 0.0) == [40.0, 10.0, 0.0]


@pytest.mark.parametrize(("price", "ends"), [(20.0, [170.0, 50.0]), (30.0, [100.0, 150.0])])
def test_stop_must_be_worth_twice_its_price(price: float, ends: list[float]) -> None:
    """A job with 100 s left gives way to one of 50 s if twice the price is less than 50 s: played, and decided."""
    assert played([100.0, 50.0], [4, 4], [price] * 2, [True, False], 0.0) == ends
    scheduler = Scheduler(FLEET, price=price, order=0.0)
    scheduler.submit(GangJob("long", "m", (4,)), 100.0 + price)
    scheduler.decide(1.0)
    scheduler.submit(GangJob("short", "m", (4,)), 50.0, now=price)  # the other got on for its price
    assert len(scheduler.decide(1.0).stops) == (ends[1] == 50.0)


@pytest.mark.parametrize(("far", "best"), [(1e9, 1.0), (0.1, 0.0)])
def test_far_seconds_count_less(monkeypatch: pytest.MonkeyPatch, far: float, best: float) -> None:
    """An order by which one is soon done and the other late is best if far seconds are cut, and not if they are not."""
    ends = {order: np.array([10.0, 10.0]) for order in ORDERS} | {0.0: np.array([1.0, 20.0])}
    monkeypatch.setattr(ahead, "rollout", lambda scene, reserve, order: ends[order])
    monkeypatch.setattr(ahead, "FAR", far)
    scheduler = Scheduler(FLEET, price=1.0)
    scheduler.submit(GangJob("runs", "m", (4,)), 100.0)
    scheduler.decide(1.0)
    scheduler.submit(GangJob("waits", "m", (4,)), 50.0)
    look = Lookahead(1.0)
    look.choose(scheduler._state, np.inf)
    assert look.order == best
    assert [c.why_not for c in look.candidates()].count("") == 1


@pytest.mark.parametrize("usual", ORDERS)
def test_equal_orders_leave_the_usual_one(monkeypatch: pytest.MonkeyPatch, usual: float) -> None:
    """Where all orders end alike but for the last digits of their sums, the usual one is kept."""
    rows = {order: np.array([10.0, 10.0 - 1e-12 * abs(order - usual)]) for order in ORDERS}
    monkeypatch.setattr(ahead, "rollout", lambda scene, reserve, order: rows[order])
    scheduler = Scheduler(FLEET, price=1.0)
    scheduler.submit(GangJob("runs", "m", (4,)), 100.0)
    scheduler.decide(1.0)
    scheduler.submit(GangJob("waits", "m", (4,)), 50.0)
    look = Lookahead(usual)
    look.choose(scheduler._state, np.inf)
    assert look.order == usual


def test_bound_is_below_what_is_played_however_long_the_queue_is() -> None:
    """With more jobs than are played in the queue GPUs of running ones count, and prices go on from those before."""
    rng = np.random.default_rng(0)
    scheduler = Scheduler(FLEET)
    for i in range(2 * ahead.MOST):
        scheduler.submit(GangJob(f"j{i}", "m", (int(rng.choice([1, 2, 4])),)), float(rng.integers(10, 1000)))
    prices = None
    for _ in range(3):
        told = scheduler.explain(scheduler.decide(1.0))
        assert told.objective is not None and told.bound is not None
        assert 0.6 * told.objective < told.bound <= told.objective
        assert scheduler._worth is not None and scheduler._worth.prices is not prices
        prices = scheduler._worth.prices
        name, job = next(iter(scheduler._state.running.items()))
        scheduler.finish(name, now=scheduler.now + job.left(scheduler.now))
