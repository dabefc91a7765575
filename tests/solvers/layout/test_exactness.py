"""Every exact method, and every bound, of small layouts beside all plans."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances.certificates import verify_bound
from gangplan.instances.certificates.layouts import FamiliesCertificate
from gangplan.instances.layout.measured import MeasuredLayers
from gangplan.instances.layout.pool import GpuPool, Link
from gangplan.instances.layout.problem import Calibration, LayoutProblem
from gangplan.instances.layout.transformer import Transformer
from gangplan.instances.verify import verify
from gangplan.solvers.layout.referee import optimum, random_problem

EXACT = "branch", "plain_cpsat", "plain_milp", "milp", "cpsat"
RIVALS = "megatron_rule", "equal_layers", "annealing"


def pool(gpu: str = "A", count: int = 1, memory: float = 1e9, rate: float = 1.0) -> GpuPool:
    """Return GPUs whose links cost nothing to speak of."""
    return GpuPool(gpu, count, memory, 1e12, rate, rate, rate, (Link(count, 1e12),))


def measured(forward: list[list[float]], gpus: str) -> MeasuredLayers:
    """Return layers that take these seconds on each GPU; a weight each, nothing kept."""
    rows, blocks = np.array(forward, dtype=float).shape
    nothing, one = np.zeros((rows, blocks)), np.ones(rows, dtype=np.int32)
    names = tuple(map(str, range(blocks)))
    rest = nothing, nothing, nothing + 1, nothing, nothing
    return MeasuredLayers("m", names, tuple(gpus), one, one, np.array(forward), *rest)


def layout(model: Any, *pools: GpuPool, batch: int = 4, **more: Any) -> LayoutProblem:
    """Return a problem without overhead."""
    return LayoutProblem(model, pools, batch, 8, reserve=0.0, calibration=Calibration(overhead=0.0), **more)


CASES = {
    # A and B take 10 s each, C 4 s, but A is quick with the first block, B with the second
    "unlike pools": layout(measured([[1, 9], [9, 1], [2, 2]], "ABC"), pool("A"), pool("B"), pool("C")),
    # a stage takes embedding and all layers with experts, but not the wide layer between them
    "a wide layer is left out": layout(
        Transformer("m", 4, 64, 1, 1, 64, 920, 221, experts=2, active=1, expert_feedforward=64, first_dense=1),
        pool("A", rate=1e9),
        pool("B", rate=1e9),
    ),
    "one block": layout(measured([[3]], "A"), pool()),
    "layers without weights": random_problem(29, layers=5),
    # narrow gradients sent twice, instead of gradients and wide weights
    "nothing shared": random_problem(288, layers=5),
    # the ranks that share a layer share the states of its experts, though there is one replica
    "experts of one replica": random_problem(387, layers=5),
    "unlike pools at random": random_problem(431, layers=5),
}


def agree(problem: LayoutProblem, methods: tuple[str, ...]) -> None:
    """Assert that methods find and prove the optimum, or that there is no plan."""
    best = optimum(problem)
    for name in methods:
        result = solve(problem, time_limit=60, method=name, workers=1)
        said = f"{name}: {result.status} {result.objective} {result.bound}, the optimum is {best}"
        if best is None:
            assert result.status == "INFEASIBLE", said
        else:
            assert result.status == "OPTIMAL", said
            assert result.objective == pytest.approx(best, rel=2e-6), said
            assert result.bound is not None and result.bound <= best * (1 + 1e-6), said


@pytest.mark.parametrize("name", CASES)
def test_what_was_missed(name: str) -> None:
    """Layouts that `branch` once left out, or bounded wrongly, are found."""
    agree(CASES[name], ("branch",))


@pytest.mark.parametrize("seed", range(6))
def test_exact_methods_are_right(seed: int) -> None:
    """No bound is above the optimum, no plan below, and OPTIMAL and INFEASIBLE are proved and true."""
    agree(random_problem(seed, layers=1), EXACT)


@pytest.mark.long
def test_first_layers_fill_many_chunks() -> None:
    """Layers without experts may fill more chunks than there are stages."""
    agree(random_problem(442, layers=5), ("branch",))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_exact_methods_are_right_at_length(seed: int) -> None:
    """The same on 200 problems."""
    agree(random_problem(seed, layers=2 + seed % 3 // 2), EXACT)


def certificates_hold(problem: LayoutProblem) -> None:
    """Assert that no certificate proves more than the optimum, whatever its threshold."""
    best = optimum(problem)
    for threshold in (1e30,) if best is None else (best * 3, best * (1 - 1e-8), best * 1.001):
        proved = verify_bound(problem, FamiliesCertificate(Fraction(threshold), 10**6))
        assert best is None or proved <= best * (1 + 1e-9), f"{float(proved)} is above {best}"


@pytest.mark.parametrize("name", CASES)
def test_certificates_hold(name: str) -> None:
    """No certificate is above the optimum where pools are unlike, or nothing is shared."""
    certificates_hold(CASES[name])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_certificates_hold_at_length(seed: int) -> None:
    """The same on 200 problems."""
    certificates_hold(random_problem(seed, layers=2))


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_auto_proves_small_layouts(seed: int) -> None:
    """What `auto` calls final of a small problem is certified, or has a second witness."""
    result = solve(random_problem(seed, layers=1), time_limit=20, workers=1)
    assert "certified" in result.standing or "proved" in result.standing, result.standing


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_offer_layouts(name: str) -> None:
    """Each rival has a plan where everything fits, not below the optimum."""
    problem = layout(Transformer("t", 4, 16, 2, 1, 8, 64, 24), pool(count=4, rate=1e6))
    best = solve(problem, method="branch", time_limit=20, workers=1)
    result = solve(problem, method=name, time_limit=20, workers=1)
    assert result.plan is not None and verify(problem, result.plan).ok
    assert best.objective is not None and result.objective is not None
    assert result.objective >= best.objective * (1 - 1e-9)


def test_large_layouts_have_no_textbook_model() -> None:
    """Of more GPUs than a model can hold the combinations of degrees are not even counted."""
    problem = layout(Transformer("t", 32, 64, 64, 8, 128, 64, 24), pool(count=64), batch=512)
    result = solve(problem, method="plain_milp", time_limit=20, workers=1)
    assert result.status == "UNKNOWN" and "too large" in result.notes[0]
