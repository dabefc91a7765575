"""Constants refitted to rows that were made with others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances.layout import calibrate
from gangplan.instances.layout.calibrate import MeasuredStep, refit, within_memory
from gangplan.instances.layout.models import MODELS
from gangplan.instances.layout.pool import gpu_pool
from gangplan.instances.layout.problem import Calibration, LayoutPlan, LayoutProblem
from gangplan.instances.verify.layout import verify_layout


def steps(truth: Calibration) -> list[MeasuredStep]:
    """Return layouts of which seconds are as some constants say."""
    rows = []
    for name, precision in (("llama-3-8b", "fp8"), ("llama-3-8b", "bf16"), ("qwen3-30b-a3b", "bf16")):
        for t, b, sequence in ((1, 1, 1024), (2, 4, 8192), (8, 1, 512), (1, 8, 8192)):
            problem = LayoutProblem(MODELS[name], (gpu_pool("H100", 1),), 64, sequence, precision)
            expert = 8 if "qwen" in name and t == 1 else 1
            plan = LayoutPlan(*np.array([[0], [t], [len(problem.model.chain())], [0], [0]]), data=8 // t, expert=expert)
            step = MeasuredStep(problem, replace(plan, micro_batch=b), 1.0)
            rows.append(step._replace(seconds=step.predict(truth).objective or 0.0))
    return rows


def test_constants_are_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that certain constants made lead back to these, from others and with nothing that holds them."""
    truth = Calibration(0.6, 0.5, 0.7, 0.35, 3e-4, 0.25)
    monkeypatch.setattr(calibrate, "PULL", 1e-4)
    found = refit(steps(truth))
    for name in Calibration.__slots__:
        assert getattr(found, name) == pytest.approx(getattr(truth, name), rel=0.02), name


def test_what_no_row_tells_stays() -> None:
    """Rows of dense models in 16 bits leave the constants of experts and of 8 bits alone."""
    start = Calibration()
    found = refit(steps(replace(start, efficiency=0.5))[4:8])
    assert found.efficiency < 0.6
    assert (found.efficiency_8, found.grouped) == pytest.approx((start.efficiency_8, start.grouped), rel=1e-3)


def test_within_memory() -> None:
    """As few first layers as needed compute again what they keep, norms before all of it."""
    problem = LayoutProblem(MODELS["llama-3-8b"], (gpu_pool("H100", 1),), 8, 16384, gradient_bytes=2.0)
    plan = LayoutPlan(*np.array([[0], [4], [34], [0], [0]]), data=2, micro_batch=1)
    fits = within_memory(problem, plan)
    assert (fits.full.tolist(), fits.selective.tolist()) == ([0], [0]) and not verify_layout(problem, fits).violations
    small = replace(problem, pools=(gpu_pool("H100", 1, memory=34e9),))
    assert verify_layout(small, plan).violations
    fits = within_memory(small, plan)
    assert not verify_layout(small, fits).violations
    less = replace(
        fits,
        full=np.maximum(fits.full - 1, 0),
        selective=np.where(fits.full > 0, 32 - fits.full + 1, fits.selective - 1),
    )
    assert verify_layout(small, less).violations
    tiny = within_memory(replace(problem, pools=(gpu_pool("H100", 1, memory=20e9),)), plan)
    assert (tiny.full.tolist(), tiny.selective.tolist()) == ([32], [0])
