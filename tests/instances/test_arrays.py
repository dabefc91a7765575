"""Tests of the checks that every instance goes through."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import gangplan
from gangplan import (
    Demand,
    Expected,
    InstanceError,
    MoldableJob,
    NodePool,
    Pool,
    Running,
    SchedulePlan,
    ScheduleProblem,
    Task,
)

NUMBERS: dict[type, tuple[Any, ...]] = {int: (np.int64, np.int32, np.uint8), float: (np.float64, np.float32, np.int32)}
WRONG: tuple[Any, ...] = (
    *(None, 1, -1, 2.5, float("nan"), "x", "", True, (), ("a",), [1, "b"], {"a": 1}, {1}, object(), b"x"),
    *(np.int64(-1), np.float64("nan"), np.bool_(True), np.array(3), np.zeros((2, 2)), np.datetime64("2020"), range(3)),
)


def samples() -> Iterator[Any]:
    """Yield a value of every public dataclass that a user makes."""
    gangs, step = gangplan.generate("gangs", jobs=2, racks=1, nodes=2), gangplan.generate("gpt", layers=1)
    ops, zero = step.graph.names, [0] * step.graph.n_ops
    plan = gangplan.PartitionPlan(ops, zero, zero)
    yield from (gangplan.LatencyPlan(ops, zero), gangplan.StepPlan(ops, zero, zero))
    yield from (gangplan.StagesPlan(ops, zero, [0], [1]), gangplan.generate("gpt", layers=1, objective="latency"))
    yield gangplan.generate("arrivals", jobs=2)
    yield gangplan.PlacementPlan(("a",), [0], [0], [1], [0], [0], [0])
    yield from (gangs, gangs.fleet, gangs.jobs[0], gangs.speeds, step, step.graph, step.cluster)
    yield from (step.cluster.topology, step.cluster.topology.levels[0], step.cluster.device_types[0], plan)
    yield from (gangplan.with_objective(step, x) for x in ("step", "stages"))
    yield from (Pool(8), NodePool(2, 8), gangplan.RampTopology(), Demand(1.0, 2.0, 3.0, 4.0), Task(Demand()))
    yield from (Expected(Task(Demand()), 0.5), Running("a", ("n",), (1,)), MoldableJob("a", (1, 2), (2.0, 1.0), 3.0))
    yield gangplan.megatron(step.graph, "A100", (1, 2))
    problem = ScheduleProblem((MoldableJob("a", (1, 2), (2.0, 1.0)),), Pool(2), "throughput", 4.0)
    yield from (problem, SchedulePlan(("a",), [0], [0.0]))
    model, pool = gangplan.Transformer("m", 2, 64, 4, 4, 16, 100, 128), gangplan.gpu_pool("H100", 1, 2)
    yield from (model, pool, pool.levels[0], gangplan.Calibration(), gangplan.LayoutProblem(model, (pool,), 2, 64))
    yield gangplan.LayoutPlan([0], [1], [4], [0], [0], 2)  # type: ignore[arg-type]
    row = [[1.0, 1.0]]
    yield gangplan.MeasuredLayers("m", ("a", "b"), ("A",), [1], [1], row, row, row, row, row, row)  # type: ignore[arg-type]
    yield from (
        gangplan.PipelineProblem([0], [1.0], [1.0], [1.0], 1),
        gangplan.PipelinePlan([0, 1, 2], [0] * 3, [0] * 3),
    )  # type: ignore[arg-type]


SAMPLES = list(samples())


@pytest.mark.parametrize("value", SAMPLES, ids=lambda x: type(x).__name__)
def test_scalars_of_numpy_are_numbers(value: Any) -> None:
    """A number of numpy is kept as the Python number that it is, alone or in a tuple."""
    for f in fields(value):
        known = getattr(value, f.name)
        for kind in NUMBERS.get(type(known), ()):
            if kind is not np.int32 or (known == int(known) and known < 2**31):
                other = getattr(replace(value, **{f.name: kind(known)}), f.name)
                assert other == kind(known).item() and type(other) in (int, float)
        if isinstance(known, tuple) and known and type(known[0]) in NUMBERS:
            other = getattr(replace(value, **{f.name: np.array(known)}), f.name)
            assert other == known and {type(x) for x in other} == {type(x) for x in known}


@pytest.mark.parametrize("value", SAMPLES, ids=lambda x: type(x).__name__)
def test_what_does_not_fit_is_named(value: Any) -> None:
    """Anything in any field is taken, or refused by a line that names the field or what it has to agree with."""
    for f in fields(value):
        for wrong in WRONG:
            try:
                replace(value, **{f.name: wrong})
            except InstanceError as error:
                assert error.field and len(str(error)) < 400


def test_samples_are_all_that_users_make() -> None:
    """A public dataclass that checks its fields has a sample here."""
    public = (getattr(gangplan, name) for name in gangplan.__all__)
    made = {x for x in public if isinstance(x, type) and is_dataclass(x) and hasattr(x, "__post_init__")}
    known = {type(x) for x in SAMPLES}
    assert {x.__name__ for x in made - known} == {"Entry"}


def test_what_a_public_field_asks_for_is_public() -> None:
    """Whoever makes a public value finds the types of its fields beside it."""
    public = [x for name in gangplan.__all__ if isinstance(x := getattr(gangplan, name), type)]
    for cls in public:
        for name, hint in get_type_hints(cls).items() if cls not in (gangplan.Decision, gangplan.Result) else ():
            asked = [x for x in (hint, *get_args(hint)) if is_dataclass(x)]
            assert not set(asked) - set(public), f"{cls.__name__}.{name}"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MoldableJob("a", 8, (1.0,)), r"degrees: 8 is not a sequence; write \(8,\)"),  # type: ignore[arg-type]
        (lambda: MoldableJob("a", (8,), np.float64(1)), r"durations: 1.0 is not a sequence; write \(1.0,\)"),  # type: ignore[arg-type]
        (lambda: MoldableJob("a", (True,), (1.0,)), r"degrees\[0\]: True is not a whole number"),
        (lambda: Pool(np.bool_(True)), "gpus: True is not a whole number"),  # type: ignore[arg-type]
        (
            lambda: ScheduleProblem((MoldableJob("a", (1,), (1.0,)),), 1),  # type: ignore[arg-type]
            r"capacity: 1 is no Pool or NodePool or RampTopology; write Pool\(gpus\)",
        ),
        (
            lambda: ScheduleProblem(MoldableJob("a", (1,), (1.0,)), Pool(1)),  # type: ignore[arg-type]
            r"jobs: MoldableJob\(.* is not a sequence; write \[...\] around it",
        ),
        (lambda: ScheduleProblem(({"name": "a"},), Pool(1)), r"jobs\[0\]: {'name': 'a'} is no MoldableJob; write Mol"),  # type: ignore[arg-type]
        (lambda: gangplan.GangJob("a", "any", (8,), worker=8), r"worker: 8 is no Demand; write Demand\(gpu\)"),  # type: ignore[arg-type]
        (lambda: gangplan.GangJob("a", "any", (8,), requires="x"), r"requires: 'x' is not a sequence; write \('x',\)"),  # type: ignore[arg-type]
        (lambda: gangplan.StepProblem(None, None), "graph: None is no OpGraph; write OpGraph"),  # type: ignore[arg-type]
        (lambda: gangplan.Cluster.flat(gangplan.DeviceType("A"), bandwidth=1.0), r"groups\[0\]: .* is no pair; write"),  # type: ignore[arg-type]
        (lambda: gangplan.TreeTopology.regular((), 8), r"fanout: 8 is not a sequence"),  # type: ignore[arg-type]
        (lambda: gangplan.with_objective(ScheduleProblem, "step"), "problem: .* is no problem of a graph on a cluster"),  # type: ignore[arg-type]
        (
            lambda: gangplan.with_objective(gangplan.generate("gpt", layers=1), "step", contenion=True),
            "contenion: True .* did you mean contention",
        ),
        (lambda: ScheduleProblem.of((), Pool(1)), "workload: .. is no Workload; write Workload"),  # type: ignore[arg-type]
        (lambda: gangplan.generate("gpt", device_type="a100"), "did you mean A100"),
        (lambda: gangplan.read(None), "path: None is not the name of a file"),  # type: ignore[arg-type]
        (lambda: gangplan.load({}), "path: {} is not the name of a file"),  # type: ignore[arg-type]
        (lambda: gangplan.save(SAMPLES[-1], None), "path: None is not the name of a file"),  # type: ignore[arg-type]
        (lambda: gangplan.content_hash(3), "document: int is no problem and no plan"),
        (lambda: gangplan.verify(SchedulePlan(("a",), [0], [0]), None), r"write verify\(problem, plan\)"),  # type: ignore[call-overload]
    ],
)
def test_first_mistakes(make: Any, words: str) -> None:
    """What somebody writes who has not read the page is answered with what to write."""
    with pytest.raises(InstanceError, match=words):
        make()


def test_generators_take_numbers_of_numpy() -> None:
    """A problem is the same whether its arguments are numbers of numpy or of Python."""
    for kind, options in {
        "layered": {"ops": 30},
        "moldable": {"jobs": 3},
        "gangs": {"jobs": 3},
        "gpt": {"layers": 1},
    }.items():
        other = {name: np.int64(x) for name, x in options.items()}
        same = map(gangplan.content_hash, (gangplan.generate(kind, **options), gangplan.generate(kind, **other)))
        assert len(set(same)) == 1
