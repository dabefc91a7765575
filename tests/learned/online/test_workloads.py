"""Episodes are of many clusters, each with others like it to imagine a future, and none twice."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.learned.online.workloads import GROWTH, KINDS, MOST, POOL, episode
from gangplan.simulator.gangs.arrays import begin
from gangplan.simulator.gangs.mixes import VALIDATION
from gangplan.simulator.gangs.step import least_cost

NUMBERS = range(24)


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_the_same_number_is_the_same_episode(number: int) -> None:
    """Of every kind; of validation it is another one, and so is the next of its kind."""
    one, same = episode(number, 30), episode(number, 30)
    for a, b in zip((*one.jobs, *one.cluster, *one.pool), (*same.jobs, *same.cluster, *same.pool), strict=True):
        assert np.array_equal(a, b)
    for other in (episode(number, 30, VALIDATION), episode(number + len(KINDS), 30)):
        assert not np.array_equal(one.jobs.submit, other.jobs.submit)


def test_episodes_are_of_many_clusters() -> None:
    """With jobs that fit there, more on a large one, and a pool of other jobs that fit there."""
    sizes = set()
    for number in NUMBERS:
        jobs, cluster, pool = episode(number, 50)
        begin(jobs, cluster)
        begin(pool, cluster)
        sizes.add(gpus := int(cluster.first[-1]))
        assert (len(jobs.submit), len(pool.submit)) == (50 * min(max(gpus // GROWTH, 1), MOST), POOL)
        assert (np.diff(jobs.submit) >= 0).all() and (np.diff(pool.submit) >= 0).all()
        assert not np.array_equal(jobs.submit, pool.submit[:50])
        assert (jobs.work > 0).all() and (jobs.expected > 0).all()
    assert {24, 32, 64} < sizes and max(sizes) >= 256


def test_loads_are_about_one() -> None:
    """GPU seconds that jobs take where they run fastest, over those until the last arrives."""
    loads = []
    for number in NUMBERS:
        _, cluster, pool = episode(number, 10)
        least = 1 + pool.intensity * least_cost(cluster)[pool.gpus]
        loads.append(float((pool.work * pool.gpus * least).sum() / (cluster.first[-1] * pool.submit[-1])))
    assert min(loads) > 0.4 and max(loads) < 4  # large gangs that talk much are slow wherever they are
    assert 0.8 < np.median(loads) < 1.5


def test_some_are_told_with_an_error() -> None:
    """Of classes of jobs the mean, or lognormal about what is true; most are told what is true."""
    told = [bool((x.jobs.work == x.jobs.expected).all()) for x in (episode(n, 30) for n in NUMBERS)]
    assert not any(told[n] for n in NUMBERS if KINDS[n % len(KINDS)] == "uncertain")
    assert all(told[n] for n in NUMBERS if KINDS[n % len(KINDS)] in ("small", "expensive", "mixed", "loaded"))
    heavy = [told[n] for n in NUMBERS if KINDS[n % len(KINDS)] == "heavy"]
    assert any(heavy) and not all(heavy)
