"""Policies over seeds: means, intervals, differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from gangplan.instances import InstanceError
from gangplan.instances.workload import Workload
from gangplan.simulator.metrics import Metrics, compare, summary
from gangplan.simulator.metrics.compare import student_quantile, student_within
from gangplan.simulator.trace import simulate


def drawn(seed: int) -> Workload:
    """Make jobs that queue on 8 GPUs."""
    rng = np.random.default_rng(seed)
    n = 60
    names = tuple(map(str, range(n)))
    return Workload(names, np.cumsum(rng.exponential(10, n)), rng.integers(1, 5, n), rng.exponential(30, n))


def figures(policy: str, seeds: int) -> list[Metrics]:
    """Return the figures of a policy over seeds."""
    return [summary(simulate(drawn(seed), 1, 8, policy=policy)) for seed in range(seeds)]


def test_by_hand() -> None:
    """Intervals of two policies over three seeds, and of their differences."""
    one = figures("fifo", 1)[0]
    runs = {
        "a": [replace(one, mean_jct=x) for x in (10.0, 12.0, 14.0)],
        "b": [replace(one, mean_jct=x) for x in (9.0, 12.0, 12.0)],
    }
    first, second = compare(runs, ["mean_jct"])
    assert (first.policy, first.figure, first.seeds) == ("a", "mean_jct", 3)
    assert first.mean == 12
    assert first.margin == pytest.approx(4.302653 * 2 / 3**0.5)
    assert (first.difference, first.difference_margin) == (None, None)
    # differences of -1, 0 and -2: their spread is 1
    assert second.difference == -1
    assert second.difference_margin == pytest.approx(4.302653 / 3**0.5)


def test_pairs_tell_more_than_two_means() -> None:
    """The difference of two policies that saw the same jobs is known better than from their means apart."""
    rows = {(row.policy, row.figure): row for row in compare({p: figures(p, 8) for p in ("fifo", "sjf")})}
    fifo, sjf = rows["fifo", "mean_jct"], rows["sjf", "mean_jct"]
    assert fifo.margin is not None
    assert sjf.margin is not None
    assert sjf.difference is not None
    assert sjf.difference_margin is not None
    assert sjf.difference + sjf.difference_margin < 0
    assert sjf.difference_margin < np.hypot(fifo.margin, sjf.margin)
    assert sjf.difference == pytest.approx(sjf.mean - fifo.mean)
    assert ("sjf", "fragmentation") not in rows  # GPUs were only counted


def test_one_seed() -> None:
    """Of one seed there is no interval."""
    rows = compare({p: figures(p, 1) for p in ("fifo", "sjf")}, ["makespan"])
    assert [(row.margin, row.difference_margin) for row in rows] == [(None, None)] * 2
    assert rows[1].difference is not None


def test_bad_input() -> None:
    """What cannot be compared is refused."""
    with pytest.raises(InstanceError, match=r"found: has no policy"):
        compare({})
    with pytest.raises(InstanceError, match=r"found: has a policy without a run"):
        compare({"fifo": []})
    with pytest.raises(InstanceError, match=r"fifo 2, sjf 1"):
        compare({"fifo": figures("fifo", 2), "sjf": figures("sjf", 1)})
    with pytest.raises(InstanceError, match=r"figures: 'jct' is not one of jobs, "):
        compare({"fifo": figures("fifo", 1)}, ["jct"])


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 40, 199, 2000])
def test_students_t(freedom: int) -> None:
    """Probabilities and quantiles of Student's t are those of SciPy."""
    for t in (0.0, 0.3, 1.0, 2.5, 9.0):
        assert student_within(t, freedom) == pytest.approx(1 - 2 * student.sf(t, freedom), abs=1e-13)
    for level in (0.5, 0.95, 0.999):
        assert student_quantile(freedom, level) == pytest.approx(student.ppf((1 + level) / 2, freedom), rel=1e-9)
