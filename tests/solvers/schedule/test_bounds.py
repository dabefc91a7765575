"""Bounds in closed form: right by hand, and the loop of the relaxation gets on."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem
from gangplan.solvers import native
from gangplan.solvers.schedule import kernels, price_kernels, run_kernels
from gangplan.solvers.schedule.bounds import area, best_end, squashed
from gangplan.solvers.schedule.prepare import prepare

from ..uncompiled import uncompiled

UNIX = 1.7e9


@pytest.mark.parametrize(
    ("zero", "seconds", "gpus"), [(UNIX, 1e-7, 1), (600.0, 1e-3, 1), (3600.0, 1e-3, 1000), (1e9, 1e-9, 1)]
)
def test_squashing_ends(zero: float, seconds: float, gpus: int) -> None:
    """Each turn ends a job or begins one, however small the work beside the time; and the means keep their digits."""
    pops, source, n = list[int](), uncompiled(native, kernels, price_kernels, run_kernels), 10

    class Counted(source.Heap):  # type: ignore[misc, name-defined]
        def pop(self) -> Any:
            pops.append(1)
            assert len(pops) <= 40, "the loop does not get on"
            return super().pop()

    source.Heap = Counted
    given = [zero] * n, [seconds / gpus] * n, [1.0] * n, list(range(n)), False
    ended, busy = source.flows(*given)
    assert pops and run_kernels.flows(*given) == (ended, busy)
    assert ended == pytest.approx(sum(range(1, n + 1)) * seconds / gpus)
    assert busy == pytest.approx(sum(k + 0.5 for k in range(n)) * seconds / gpus)


def test_bounds_in_closed_form() -> None:
    """Three jobs on one GPU by hand: areas after each release, and mean busy times with half of each run."""
    jobs = tuple(
        MoldableJob(n, (1,), (s,), release=r) for n, s, r in (("a", 4.0, 0.0), ("b", 2.0, 1.0), ("c", 3.0, 9.0))
    )
    assert area(prepare(ScheduleProblem(jobs, Pool(1), "makespan"))) == 12.0
    # a: 0..1 and 3..6, b: 1..3, c: 9..12; means 0.125 + 3.375, 2, 10.5
    assert squashed(prepare(ScheduleProblem(jobs, Pool(1)))) == pytest.approx(3.5 + 2 + 2 + 1 + 10.5 + 1.5)
    assert squashed(prepare(ScheduleProblem(jobs, NodePool(1, 1), "mean_jct"))) == pytest.approx((20.5 - 10) / 3)


def test_area_at_degrees_in_time() -> None:
    """With 4 GPUs a job cannot take one of them for 12 s if all end by 7: it takes 4 for 4 s, and four others 3 s."""
    jobs = (
        MoldableJob("wide", (1, 4), (12.0, 4.0)),
        *(MoldableJob(f"narrow{i}", (1,), (3.0,)) for i in range(4)),
    )
    assert area(prepare(ScheduleProblem(jobs, Pool(4), "makespan"))) == 7.0
    assert area(prepare(ScheduleProblem(jobs[1:], Pool(4), "makespan"))) == 3.0


def test_ends_with_jobs_left_out() -> None:
    """A job of 9 s is left out for 2 s, one of 5 s is not worth its price of 4 s: the goal is 5 + 2."""
    jobs = (
        MoldableJob("must", (1,), (3.0,)),
        MoldableJob("long", (1,), (9.0,), value=2.0),
        MoldableJob("short", (1,), (5.0,), value=4.0),
    )
    assert best_end(prepare(ScheduleProblem(jobs, Pool(9), "makespan")), 0.0) == (5.0, 7.0)
