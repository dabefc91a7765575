"""Tiny instances have the optimum that is argued for them."""

from __future__ import annotations

import pytest

import gangplan
from gangplan import teach
from gangplan.instances import InstanceError
from gangplan.solvers.method import OBJECTIVES, suite


@pytest.mark.parametrize("name", teach.LESSONS)
def test_optimum_by_enumeration(name: str) -> None:
    """Looking at every plan finds the optimum; of Graham's case that of two GPUs, which is small enough."""
    lesson = teach.graham(2) if name == "graham" else teach.LESSONS[name]()
    assert suite(lesson.problem.objective).optimum(lesson.problem) == pytest.approx(lesson.optimum, rel=1e-9)


@pytest.mark.parametrize("name", teach.LESSONS)
def test_optimum_by_solving(name: str) -> None:
    """The portfolio proves the optimum."""
    lesson = teach.LESSONS[name]()
    result = gangplan.solve(lesson.problem, time_limit=30)
    assert result.status == "OPTIMAL" and result.objective == pytest.approx(lesson.optimum, rel=1e-6)


def test_there_is_one_for_each_objective() -> None:
    """Every objective has a lesson, and each lesson argues in two to four sentences that name its optimum."""
    lessons = {name: make() for name, make in teach.LESSONS.items()}
    assert {x.problem.objective for x in lessons.values()} == set(OBJECTIVES)
    for name, lesson in lessons.items():
        assert 2 <= lesson.why.count(". ") + 1 <= 5, name
        assert f"{lesson.optimum:g}" in lesson.why, name


def test_symmetry_is_as_large_as_told() -> None:
    """Of the 2187 assignments of seven ops to three devices 1050 are best, of two kinds."""
    from itertools import product

    lesson = teach.symmetric()
    loads = [tuple(sorted(where.count(d) for d in range(3))) for where in product(range(3), repeat=7)]
    best = [load for load in loads if max(load) == lesson.optimum]
    assert (len(loads), len(best), set(best)) == (2187, 1050, {(2, 2, 3), (1, 3, 3)})


@pytest.mark.parametrize("m", [1, 0, -3, 2.5])
def test_bad_machines(m: float) -> None:
    """Graham's case needs two machines."""
    with pytest.raises(InstanceError, match=f"m: {m!r} is not a whole number of 2 or more"):
        teach.graham(m)  # type: ignore[arg-type]
