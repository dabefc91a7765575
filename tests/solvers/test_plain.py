"""Plain models of every objective: what they refuse and say, and that nobody runs them but by name."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan import Status, methods, solve
from gangplan.hybrid.table import ENTRIES
from gangplan.instances import with_objective
from gangplan.instances.generators import generate
from gangplan.solvers import Run, plain
from gangplan.solvers.method import OBJECTIVES, suite

NAMES = ("milp", "plain_cpsat", "plain_milp")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_has_them_by_name_only(objective: str) -> None:
    """Each objective has a MILP, a plain one and a plain CP-SAT model that prove, and `auto` runs none of them."""
    assert set(NAMES) <= methods(objective).keys()
    plain = [suite(objective).methods[name].exact for name in ("plain_cpsat", "plain_milp")]
    assert all(plain) or objective in ("throughput", "step")  # whose textbook models are not exact at nasty scales
    assert not [x for x in ENTRIES if x.objective == objective and x.name in NAMES]


@pytest.mark.parametrize("objective", ["throughput", "latency", "step", "stages", "placement"])
@pytest.mark.parametrize("name", ["plain_cpsat", "plain_milp"])
def test_too_large(objective: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of too many rows is not built: `solve` has a draft and a note, a run only the note."""
    problem = small(objective)
    monkeypatch.setattr(plain, "ROWS", 5)
    result = solve(problem, time_limit=5, method=name, workers=1)
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert result.status == Status.OPTIMAL or any(f"{name} left out" in note for note in result.notes)
    run = Run(problem, time_limit=5)
    suite(objective).methods[name].function(run, None)
    assert run.plan is None and run.bound is None
    assert [note for note in run.notes if note.startswith(f"{name} left out") and note.endswith("5 are the most")]


def small(objective: str) -> Any:
    """Return a problem with a plan."""
    if objective == "placement":
        return generate("gangs", jobs=4, racks=1, nodes=2, load=0.5)
    problem = generate("layered", ops=8, layers=4, devices=2, training=False)
    return problem if objective == "throughput" else with_objective(problem, objective)


def test_learns_until_nothing_is_left_to_learn() -> None:
    """A model is attempted again while its plan is far below its unit, or rows were learnt, and no longer."""
    learnt: list[int] = []
    units: list[float] = []
    run = Run(small("throughput"), time_limit=5)

    def attempt(unit: float) -> None:
        units.append(unit)
        if len(units) == 1:
            learnt.append(1)
        if len(units) == 2:
            run.objective = 1.0

    plain.refine(run, "mine", 1, 8.0, attempt, learnt)
    # the first teaches a row; the second has a plan of an eighth of the unit; the third is fine enough
    assert units == [8.0, 8.0, 1.0]


@pytest.mark.parametrize("engine", ["cpsat", "milp"])
def test_rows(engine: str) -> None:
    """A row holds if its conditions do: to have x at 9 takes a condition of x <= 3 that does not."""
    run = Run(small("throughput"), time_limit=5)
    model = (
        plain.PlainRows(run, 1.0, plain.by_cpsat) if engine == "cpsat" else plain.float_rows(run, 1.0, plain.by_highs)
    )
    x, a, b, c = model.count(9, "x"), *(model.binary(name) for name in "abc")
    model.row(x, 3, a, b)
    model.row(1, a)
    model.row(9, x + 9 * c)  # x may be below 9 only with c
    model.row(1, 0, c)  # which is never
    values: list[float] = []
    model.minimise(10 - x + b, lambda value: values.append([value(y) for y in (x, a, b, c)]))
    assert values[-1] == [9, 1, 0, 0]


def test_rows_that_say_nothing() -> None:
    """CP-SAT gets no row that holds for want of terms, HiGHS all; one that never holds forbids its condition."""
    run, kept = Run(small("throughput"), time_limit=5), list[int]()
    for begin in (plain.PlainRows, plain.float_rows):
        model = begin(run, 1.0, lambda rows, plan: kept.append(len(rows.entries)))
        a = model.binary("a")
        model.equal(0 * a, 0)
        model.row(1, 0, a)
        model.minimise(-1 * a, lambda value: None)
    assert kept == [1, 2]
    values: list[float] = []
    for begin, solve_rows in ((plain.PlainRows, plain.by_cpsat), (plain.float_rows, plain.by_highs)):
        model = begin(run, 1.0, solve_rows)
        a = model.binary("a")
        model.row(1, 0, a)
        model.minimise(-1 * a, lambda value, a=a: values.append(value(a)))
    assert values == [0, 0]
