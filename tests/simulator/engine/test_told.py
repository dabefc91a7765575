"""Policies that are told limits, or nothing, while jobs end when they do; and priority classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.generators.jobs import arrivals
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import simulate_named
from gangplan.simulator.engine.told import CLAIRVOYANT, told_durations
from gangplan.simulator.trace.simulate import ORDERS


def work(submit: Any, gpus: Any, duration: Any, **more: Any) -> Workload:
    """Return jobs a, b, ..."""
    names = tuple("abcdefgh"[: len(gpus)])
    return Workload(names, np.array(submit, float), np.array(gpus), np.array(duration, float), **more)


def starts(jobs: Workload, policy: Any = "fifo", **options: Any) -> list[float]:
    """Return when each job starts on two GPUs."""
    return simulate_named(jobs, 1, 2, policy, **options).start.tolist()


@pytest.mark.parametrize("discipline", ["easy", "conservative"])
def test_backfilling_by_limits(discipline: str) -> None:
    """Who backfills goes by limits, and jobs end when they do."""
    jobs = work([0, 1, 2], [1, 2, 1], [10, 5, 20], limit=np.array([100.0, 5, 50]))
    # known: b is due at 10, when a ends; c would run until 22 and waits
    assert starts(jobs, discipline=discipline) == [0, 10, 15]
    # limits: b is thought to be due at 100, and c to be done at 52; it is at 22
    assert starts(jobs, discipline=discipline, estimates="limits") == [0, 22, 2]


@pytest.mark.parametrize("discipline", ["head", "overtake", "easy", "conservative"])
def test_who_ends_early_is_followed_at_once(discipline: str) -> None:
    """No reservation holds GPUs that are free because a job ended before its limit."""
    jobs = work([0, 1], [2, 2], [10, 5], limit=np.array([100.0, 100]))
    assert starts(jobs, discipline=discipline, estimates="limits") == [0, 10]


def test_order_by_limits() -> None:
    """Shortest first means the shortest limit, in the fast simulator and in the engine."""
    jobs = work([0, 1, 2], [2, 2, 2], [10, 5, 8], limit=np.array([10.0, 50, 9]))
    assert starts(jobs, "sjf") == [0, 10, 15]
    assert starts(jobs, "sjf", estimates="limits") == starts(jobs, "sjf", estimates="limits", cpu=1e9) == [0, 18, 10]
    # srtf: at 1 b has 50 s to go by its limit, and a 9; at 2 c has 9 and a 8
    assert starts(jobs, "srtf") == [0, 1, 6]
    assert starts(jobs, "srtf", estimates="limits") == [0, 18, 10]


def test_what_is_told() -> None:
    """Without a limit counts the longest of the trace; who outlasted a limit is told what was true."""
    jobs = work([0, 0, 0], [1, 1, 1], [10, 5, 30], limit=np.array([np.inf, 50, 20]))
    told = told_durations(jobs, "limits")
    assert told is not None and told.tolist() == [50, 50, 30]
    assert told_durations(jobs, "known") is None
    with pytest.raises(InstanceError, match="estimates: 'limits' are told, but no job of the trace has a limit"):
        told_durations(work([0], [1], [1]), "limits")
    with pytest.raises(InstanceError, match="estimates: 'guess' is not one of known, limits, none"):
        told_durations(jobs, "guess")


def test_nothing_told() -> None:
    """Who needs durations is refused, and who does not decides as ever; one's own policy sees the mean."""
    jobs = work([0, 1, 2], [2, 2, 2], [10, 5, 9])
    for policy in sorted(CLAIRVOYANT):
        with pytest.raises(InstanceError, match=f"estimates: 'none' are told, and {policy} needs to know"):
            starts(jobs, policy, estimates="none")
    with pytest.raises(InstanceError, match="estimates: 'none' are told, and easy needs to know durations"):
        starts(jobs, discipline="easy", estimates="none")
    assert starts(jobs, estimates="none") == starts(jobs)

    class Spy:
        seen: list[float] = []  # noqa: RUF012

        def select(self, view: Any, chosen: Any) -> Any:
            self.seen += view.workload.duration[chosen].tolist()
            return view.workload.submit[chosen]

    starts(jobs, Spy, estimates="none")
    assert set(Spy.seen) == {8.0}


def drawn(seed: int) -> Workload:
    """Return random jobs of four classes, whose limits are their durations."""
    rng = np.random.default_rng(seed)
    jobs = arrivals(40, 0.02, seed=seed, gpus="1:4,2:3,4:2", duration="lognormal", mean=300.0)
    return replace(jobs, priority=rng.integers(-2, 2, 40), limit=jobs.duration)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", [*ORDERS, "srtf", "tiresias"])
def test_limits_that_are_true(policy: str, seed: int) -> None:
    """Limits that are the durations change nothing."""
    for discipline in ("head", "overtake") if policy in ("srtf", "tiresias") else ("head", "overtake", "easy"):
        one, two = (
            simulate_named(drawn(seed), 2, 4, policy, discipline=discipline, estimates=estimates).start
            for estimates in ("known", "limits")
        )
        assert np.allclose(one, two), discipline


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ORDERS)
def test_classes_in_both_simulators(policy: str, seed: int) -> None:
    """The fast simulator and the engine, to which cores that nobody asks for lead, put classes first alike."""
    for discipline in ("head", "overtake", "easy"):
        how: dict[str, Any] = {"discipline": discipline, "priorities": True}
        fast, engine = (simulate_named(drawn(seed), 2, 4, policy, **how, cpu=cpu).start for cpu in (None, 1e9))
        assert np.allclose(fast, engine), discipline
