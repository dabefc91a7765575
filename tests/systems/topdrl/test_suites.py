"""Suites of workloads: each is busy, the same by a seed, and tells policies what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.simulator.gangs.mixes import MIXES, SMALL, TRAINING
from gangplan.simulator.gangs.traffic import load
from gangplan.systems.topdrl.suites import SUITES, TRACES, suite


@pytest.mark.parametrize("name", MIXES)
def test_load(name: str) -> None:
    """Over many seeds the load is 1, or 1.2 where that is said; a seed makes the same jobs again."""
    made = suite(name)
    loads = [load(made.draw(seed)[0], made.fleet, made.proximity) for seed in range(60)]
    assert np.mean(loads) == pytest.approx(1.2 if name in ("loaded", "rush") else 1.0, abs=0.08)
    first, again = made.draw(7)[0], made.draw(7)[0]
    assert first.submit.tolist() == again.submit.tolist() and first.duration.tolist() == again.duration.tolist()
    assert first.gpus.max() <= made.width and first.submit.tolist() != made.draw(8)[0].submit.tolist()


def test_only_means_are_told() -> None:
    """Policies are told one of four durations, which is the mean of those of the class."""
    draws = [suite("uncertain").draw(seed) for seed in range(100)]
    true, told = (np.concatenate(x) for x in zip(*((w.duration, e) for w, e in draws), strict=True))
    assert sorted(set(told.tolist())) == [4.5, 10.5, 18.0, 27.0]
    for mean in set(told.tolist()):
        assert true[told == mean].mean() == pytest.approx(mean, rel=0.1)
        assert np.log(true[told == mean]).std() == pytest.approx(0.8, rel=0.1)
    assert all(suite(name).draw(0)[1] is None for name in MIXES if name != "uncertain")


def test_traces(data: Path) -> None:
    """Windows of traces have a load of 1 and gangs that fit; what is learned from Philly is not tested on."""
    for name in TRACES:
        made = suite(name, data)
        for seed in (0, 1, TRAINING):
            jobs = made.draw(seed)[0]
            assert load(jobs, made.fleet, made.proximity) == pytest.approx(1.0)
            assert 1 < jobs.gpus.max() <= 32 and jobs.submit.min() == 0 and (np.diff(jobs.submit) >= 0).all()
    philly = suite("philly", data)
    learned, tested = ({x for s in range(40) for x in philly.draw(first + s)[0].names} for first in (TRAINING, 0))
    assert not learned & tested
    intensity = suite("pollux", data).proximity.intensity
    assert intensity["bert"] > intensity["cifar10"] > intensity["deepspeech2"] > 0


def test_bad_input(tmp_path: Path) -> None:
    """An unknown name, and a folder without the trace, are refused."""
    with pytest.raises(InstanceError, match="small, large"):
        suite("tiny")
    with pytest.raises(InstanceError, match="philly"):
        suite("philly", tmp_path)
    assert set(TRACES) < set(SUITES)


def test_a_rush_changes_arrivals_only() -> None:
    """The middle third of the jobs comes twice as fast, and the jobs are the same."""
    calm, rush = SMALL.draw(3), replace(SMALL, rush=2.0).draw(3)
    gaps, fast = np.diff(calm.submit), np.diff(rush.submit)
    assert np.array_equal(fast[49:99], gaps[49:99] / 2)
    assert np.array_equal(np.delete(fast, range(49, 99)), np.delete(gaps, range(49, 99)))
    assert np.array_equal(calm.duration, rush.duration) and np.array_equal(calm.gpus, rush.gpus)
    with pytest.raises(InstanceError, match="rush"):
        replace(SMALL, rush=0)
