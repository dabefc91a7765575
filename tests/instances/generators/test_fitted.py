"""Synthetic workloads fitted to a trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.generators.fitted import LEVELS, WorkloadModel, fit_workload
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload


@pytest.fixture
def model() -> WorkloadModel:
    """Two sizes, twice as many jobs in the first half of the day."""
    return WorkloadModel(
        rate=np.repeat([0.02, 0.01], 12),
        swing=0.1,
        burst=2.0,
        sizes=np.array([1, 8]),
        shares=np.array([0.75, 0.25]),
        quantiles=np.stack([100 * (1 + LEVELS), 5000 * (1 + LEVELS)]),
        stays=0.4,
        alike=0.3,
    )


def test_fit_finds_what_was_drawn(model: WorkloadModel) -> None:
    """A model fitted to many drawn jobs is the model they were drawn from."""
    found = fit_workload(model.draw(200_000, seed=5))
    assert found.sizes.tolist() == [1, 8]
    assert found.shares == pytest.approx(model.shares, abs=0.01)
    assert found.quantiles == pytest.approx(model.quantiles, rel=0.02)
    assert (found.burst, found.stays) == pytest.approx((2.0, 0.4), rel=0.05)
    assert found.alike == pytest.approx(0.3, abs=0.05)
    assert found.swing == pytest.approx(0.1, abs=0.05)
    assert found.rate.mean() == pytest.approx(0.015, rel=0.1)
    assert found.rate[:12].mean() / found.rate[12:].mean() == pytest.approx(2.0, rel=0.1)


def test_same_seed(model: WorkloadModel) -> None:
    """A seed makes the same jobs again, another others; twice the load is half the time."""
    a, b, c = model.draw(50, 1), model.draw(50, 1), model.draw(50, 2)
    assert np.array_equal(a.submit, b.submit) and np.array_equal(a.duration, b.duration)
    assert not np.array_equal(a.submit, c.submit)
    assert np.allclose(model.draw(50, 1, load=2.0).submit * 2, a.submit)


def test_like_philly(data: Path) -> None:
    """Jobs like those of a virtual cluster ask for as much as its own."""
    trace = read_trace(data / "philly" / "philly.csv.gz").workload.only("ee9e8c")
    drawn = fit_workload(trace).draw(20_000)
    assert drawn.gpus.mean() == pytest.approx(trace.gpus.mean(), rel=0.1)
    assert drawn.duration.mean() == pytest.approx(trace.duration.mean(), rel=0.15)
    assert np.quantile(drawn.duration, 0.9) == pytest.approx(np.quantile(trace.duration, 0.9), rel=0.1)


def test_refused(model: WorkloadModel) -> None:
    """Wrong values are named."""
    with pytest.raises(InstanceError, match=r"burst: 0\.5 is less than 1"):
        replace(model, burst=0.5)
    with pytest.raises(InstanceError, match="alike: 2 is more than 1"):
        replace(model, alike=2)
    with pytest.raises(InstanceError, match=r"shares: add up to 1\.5"):
        replace(model, shares=np.array([0.75, 0.75]))
    with pytest.raises(InstanceError, match="rate: nothing ever arrives"):
        replace(model, rate=np.zeros(24))
    with pytest.raises(InstanceError, match="jobs: 0 "):
        model.draw(0)
    with pytest.raises(InstanceError, match="submit: all 2 jobs arrive at once"):
        fit_workload(Workload(("a", "b"), np.zeros(2), np.array([1, 1]), np.ones(2)))
