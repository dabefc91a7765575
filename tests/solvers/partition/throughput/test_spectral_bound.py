"""What eigenvalues say of the transfers of any plan, against the optimum by enumeration."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances.generators import generate
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.throughput.quotient import quotient
from gangplan.solvers.partition.throughput.spectral_bound import spectral_bounds
from gangplan.solvers.partition.tiny import random_throughput as random_problem
from gangplan.solvers.run import never

from ....seeds import examples
from .test_bounds import both, equal_devices

VARIANTS = st.sampled_from(["contiguous", "convex", "free"])


@settings(max_examples=examples(120), deadline=None)
@given(st.integers(0, 2**32), VARIANTS, st.booleans())
def test_no_plan_beats_it(seed: int, variant: str, equal: bool) -> None:
    """It is no more than the optimum: mixed types, memory, colocation, expensive transfers, merged groups or not."""
    problem = replace(equal_devices(seed), variant=variant) if equal else random_problem(seed, variant)
    best = optimum(problem)
    if best is not None:
        for q in both(problem):
            assert max(spectral_bounds(q, never), default=0.0) <= best * (1 + 1e-9)


def test_wide_layers_cannot_be_cut_for_nothing() -> None:
    """On layers that are joined at random it rises well above the work shared out; without time it is silent."""
    problem = generate(
        "layered", ops=200, layers=10, devices=8, training=False, intensity=300.0, seed=1, variant="free"
    )
    q = quotient(problem)
    found = list(spectral_bounds(q, never))
    assert found == sorted(found) and max(found) > 1.05 * float(q.work.sum()) / 8
    assert not list(spectral_bounds(q, lambda: True))


def test_it_begins_nothing_that_it_has_no_time_for() -> None:
    """Eigenvalues that would take longer than there is time are left out; nothing can stop them."""
    q = quotient(generate("layered", ops=400, layers=10, devices=8, training=False, seed=1, variant="free"))
    left = iter([60.0])
    assert len(list(spectral_bounds(q, never, lambda: next(left, 1e-4)))) == 1
    assert not list(spectral_bounds(q, never, lambda: 1e-4))
