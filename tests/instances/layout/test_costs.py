"""Costs of layouts go the way they must: with replicas, chunks, recomputation, links and neighbours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.instances.layout.costs import Degrees, block_costs
from gangplan.instances.layout.models import MODELS
from gangplan.instances.layout.pool import gpu_pool
from gangplan.instances.layout.problem import Calibration, LayoutPlan, LayoutProblem
from gangplan.instances.layout.stage import handovers, stage_reduction
from gangplan.instances.verify.layout import LayoutVerdict, verify_layout

POWERS = st.sampled_from((1, 2, 4, 8))


def problem(model: str = "llama-3-8b", **words: Any) -> LayoutProblem:
    """Return a model on 1,024 H100 with more memory than they have."""
    return LayoutProblem(MODELS[model], (gpu_pool("H100", 128, memory=1e15),), 512, 4096, **words)


def told(of: LayoutProblem, tensor: int, stages: int, **words: Any) -> LayoutVerdict:
    """Return what the verifier says of nearly equal stages."""
    count, nothing = len(of.model.chain()), np.zeros(stages, dtype=np.int32)
    blocks = count // stages + (np.arange(stages) < count % stages)
    verdict = verify_layout(of, LayoutPlan(nothing, nothing + tensor, blocks, nothing, nothing, **words))
    assert verdict.objective is not None, verdict
    return verdict


@given(POWERS, POWERS, POWERS, st.sampled_from((1, 2, 3)))
def test_more_replicas_need_no_more_memory(tensor: int, stages: int, data: int, zero: int) -> None:
    """Twice as many replicas that share states never need more memory, nor does sharing more of them."""
    here = told(problem(), tensor, stages, data=data, zero=zero).memory
    more = told(problem(), tensor, stages, data=2 * data, zero=zero).memory
    assert (more.sum(axis=0) <= here.sum(axis=0) * (1 + 1e-12)).all()
    if zero < 3:
        assert (told(problem(), tensor, stages, data=data, zero=zero + 1).memory[:3] <= here[:3]).all()


@given(POWERS, POWERS, POWERS, st.sampled_from(("llama-3-8b", "qwen3-30b-a3b")))
def test_better_constants_are_no_slower(tensor: int, stages: int, data: int, model: str) -> None:
    """A step takes no longer if a constant of the cost model is better."""
    usual = Calibration()
    at = {"data": data, "expert": data if "qwen" in model else 1}
    tensor = min(tensor, 4)
    base = told(problem(model), tensor, stages, **at).objective
    for name, better in (
        ("efficiency", 0.9),
        ("grouped", 0.9),
        ("bandwidth", 0.9),
        ("overhead", 0.0),
        ("overlap", 1.0),
    ):
        constants = replace(usual, **{name: better})
        assert told(problem(model, calibration=constants), tensor, stages, **at).objective <= base * (1 + 1e-12), name


@given(POWERS, st.integers(1, 4), POWERS)
def test_computing_again_saves_memory_for_seconds(tensor: int, stages: int, micro_batch: int) -> None:
    """Each level of recomputation keeps less and takes longer."""
    costs = block_costs(problem(), problem().pools[0], Degrees(tensor, micro_batch=micro_batch))
    assert costs is not None
    assert (np.diff(costs.kept, axis=0) <= 0).all() and (np.diff(costs.again, axis=0) >= 0).all()


def test_neighbours_wait_for_the_slower() -> None:
    """Inner stages exchange with two, outer ones with one, at the pace of the slower of two; chunks do it each."""
    assert handovers([1.0]).tolist() == [0.0]
    assert handovers([1.0, 3.0, 1.0, 1.0]).tolist() == [3.0, 6.0, 4.0, 1.0]
    assert handovers([1.0, 1.0], virtual=3).tolist() == [3.0, 3.0]


def test_experts_wait_for_what_they_are_sent() -> None:
    """Nothing that goes to experts is hidden; what tensor parallelism exchanges is, as far as there is to compute."""
    of = problem("qwen3-30b-a3b", calibration=Calibration(overlap=1.0))
    costs = block_costs(of, of.pools[0], Degrees(2, expert=8, data=4, micro_batch=8))
    assert costs is not None
    np.testing.assert_array_equal(costs.shown[2], costs.sent[2])
    assert costs.sent[2, 0, 2] > 0 and costs.sent[0, 0, 2] > 0
    np.testing.assert_allclose(costs.shown[0], np.maximum(costs.sent[0] - costs.compute, 0.0), atol=1e-15)


def test_reduction_once_a_step() -> None:
    """Replicas sum gradients and gather weights once: all of both, what ZeRO leaves of them, or none."""
    of = problem(gradient_bytes=4.0)
    group = of.pools[0].gather(8, 2)
    for zero, size in ((0, 8.0), (1, 6.0), (2, 2.0), (3, 0.0)):
        found = stage_reduction(of, of.pools[0], Degrees(2, data=8, zero=zero), 1e9, 0.0)
        assert found == pytest.approx(group.seconds(size * 1e9))
    assert stage_reduction(of, of.pools[0], Degrees(2), 1e9, 0.0) == 0.0


def test_gathered_weights_and_gradients_are_at_work() -> None:
    """The block being computed needs as many bytes again as it keeps, and with shared weights those of two blocks."""
    of = problem()
    plain, shared = (block_costs(of, of.pools[0], Degrees(1, data=8, zero=zero)) for zero in (1, 3))
    assert plain is not None and shared is not None
    assert plain.working[1] == plain.kept[0, 1] and plain.working[3] == 0
    assert shared.working[1] == plain.working[1] + 2 * of.width * plain.weights[1]


def test_no_stage_computes_again_more_than_it_has() -> None:
    """Layers that are not there are named, and so is how many there are."""
    two, blocks = np.array([0, 0]), np.array([17, 17])
    found = verify_layout(problem(), LayoutPlan(two, two + 1, blocks, two, np.array([17, 16])))
    assert found.violations == ("stage 0 computes 17 layers again, it has 16",)
