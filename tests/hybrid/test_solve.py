"""What `solve` promises besides good plans: limits, traces, bounds, callbacks, arguments."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan import methods, solve
from gangplan.instances import InstanceError, PartitionPlan, PartitionProblem, content_hash, verify
from gangplan.instances.generators import generate
from gangplan.instances.readers import read
from gangplan.solvers import Result, Run
from gangplan.solvers.partition.throughput.methods import METHODS, Method, ReducedThroughput

VARIANTS = ("contiguous", "convex", "free")
RUNS = [(m, v) for m, variants in {**methods(), "auto": VARIANTS}.items() for v in variants]


def small(variant: str = "contiguous", seed: int = 0) -> PartitionProblem:
    """Return a problem that every method is done with in a fraction of a second."""
    return generate("layered", ops=12, layers=6, training=False, devices=3, variant=variant, seed=seed)


def hard(variant: str = "contiguous") -> PartitionProblem:
    """Return a problem that nobody is done with in seconds."""
    return generate("layered", ops=300, layers=10, degree=3.0, devices=7, variant=variant, seed=5)


def trace(result: Result) -> list[tuple[float, str]]:
    """Return what must repeat: values and who found them, without the seconds."""
    return [(found.objective, found.by) for found in result.trace]


@pytest.mark.parametrize(("method", "variant"), RUNS)
def test_same_seed_same_trace(method: str, variant: str) -> None:
    """One worker and one seed give the same plans in the same order by the same methods, and the same bound."""
    results = [solve(small(variant), time_limit=60, method=method, seed=7, workers=1) for _ in range(2)]
    assert trace(results[0]) == trace(results[1]) != []
    assert results[0].bound == results[1].bound
    assert results[0].plan.device.tolist() == results[1].plan.device.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(("method", "variant"), RUNS)
def test_result_is_consistent(method: str, variant: str) -> None:
    """Objective, trace, plan, bound, status and phases of a result fit each other."""
    problem = small(variant)
    started = time.perf_counter()
    result = solve(problem, time_limit=60, method=method, seed=3, workers=1)
    wall = time.perf_counter() - started
    assert result.plan is not None and result.objective is not None and result.bound is not None
    assert verify(problem, result.plan).objective == result.objective == result.trace[-1].objective
    assert result.plan.instance == content_hash(problem)
    values = [found.objective for found in result.trace]
    assert values == sorted(set(values), reverse=True)
    seconds = [found.seconds for found in result.trace]
    assert seconds == sorted(seconds) and seconds[-1] <= result.wall_seconds <= wall
    assert 0 < result.bound <= result.objective
    gap = (result.objective - result.bound) / result.objective
    assert result.gap == pytest.approx(gap, abs=1e-15)
    assert result.status == ("OPTIMAL" if gap <= 1e-6 else "FEASIBLE")
    final = "proved" if method == "auto" else "claimed"
    assert result.stop_reason == (final if gap <= 1e-6 else "methods exhausted")
    assert sum(result.phases.values()) == pytest.approx(result.wall_seconds, rel=1e-9)
    assert min(result.phases.values()) >= 0
    assert (result.method, result.seed, result.workers) == (method, 3, 1)
    assert {"gangplan", "python", "ortools", "highspy", "numpy"} <= set(result.versions)
    assert "not installed" not in result.versions.values()


def kept(problem: PartitionProblem, limit: float, spent: Callable[[], float], workers: int, **options: Any) -> Result:
    """Solve with workers each of which has the processor for limit * 1.05 + 0.5 s at most.

    What another test left running counts too, so that one of three solves has to keep to it.
    """
    used = []
    for _ in range(3):
        before = spent()
        result = solve(problem, time_limit=limit, workers=workers, **options)
        used.append(spent() - before)
        if used[-1] <= workers * (limit * 1.05 + 0.5):
            return result
    raise AssertionError(f"{limit} s took {used} s of processor time")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("limit", [0.001, 0.05, 1.0])
def test_time_limit(limit: float, variant: str, spent: Callable[[], float]) -> None:
    """The limit holds from the call to the return, tiny ones too; what was found by then is returned."""
    problem = hard(variant)
    solve(small(variant), time_limit=60, workers=1)  # the import of the solvers is not what is measured
    result = kept(problem, limit, spent, 2)
    # also if a method is left out whose solver takes longer to import than there is time
    assert result.stop_reason == "time limit"
    assert result.status in ("FEASIBLE", "UNKNOWN")
    assert limit < 1 or result.plan is not None


def test_out_of_time_is_not_exhausted() -> None:
    """A solver whose own clock runs out a moment before ours ran out of time, and nothing else."""
    for method in ("local_search", "cpsat"):  # what is compiled or imported once is not in the 2 s
        solve(small("free"), time_limit=60, method=method, workers=1)
    result = solve(hard("free"), time_limit=2.0, method="cpsat", workers=1)
    assert (result.status, result.stop_reason) == ("FEASIBLE", "time limit")
    assert result.phases["cpsat"] > 0.5


@pytest.mark.parametrize(("method", "variant"), [run for run in RUNS if run[0] != "auto"])
def test_time_limit_of_each_method(method: str, variant: str, spent: Callable[[], float]) -> None:
    """Each method by itself keeps the limit on a problem too hard for it, once what it imports is there."""
    solve(small(variant), time_limit=60, method=method, workers=1)
    solve(hard(variant), time_limit=0.1, method=method, workers=1)
    result = kept(hard(variant), 0.25, spent, 1, method=method)
    assert result.bound is not None and result.bound > 0


@pytest.mark.parametrize(("limit", "reason"), [(0.05, "time limit"), (1.0, "proved")])
def test_time_limit_on_a_large_network(limit: float, reason: str, spent: Callable[[], float]) -> None:
    """Preparing 5,000 ops for 64 devices counts too; the largest of them soon proves the plan."""
    problem = generate("gpt", layers=178, devices=64)
    solve(small(), time_limit=60, workers=1)
    result = kept(problem, limit, spent, 2)
    assert result.stop_reason in ("time limit", reason, "claimed")


def test_time_limit_on_nasnet(data: Path, spent: Callable[[], float]) -> None:
    """So does preparing the largest profile."""
    problem = read(max((data / "pipedream").glob("*.txt"), key=lambda path: path.stat().st_size), devices=16)
    solve(small(), time_limit=60, workers=1)
    kept(problem, 0.1, spent, 2)


def test_bound_without_a_plan() -> None:
    """A bound is kept though no plan was found; where nothing is proved it is None and not 0, and so is the gap."""
    problem = small()

    def stop(run: Run) -> bool:
        return run.bound is not None

    result = solve(problem, time_limit=60, callbacks=[stop], workers=1)
    assert (result.plan, result.objective, result.gap, result.status) == (None, None, None, "UNKNOWN")
    assert result.bound is not None and result.bound > 0
    late = solve(problem, time_limit=1e-9, workers=1)
    assert (late.gap is None, late.stop_reason) == (late.bound is None, "time limit")
    assert late.bound is None or late.bound > 0
    assert (Run(problem, time_limit=1).bound, Run(problem, time_limit=1).gap) == (None, None)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gap(variant: str) -> None:
    """A gap that is good enough ends the solve before the proof."""
    problem = small(variant, seed=4)
    result = solve(problem, time_limit=60, gap=0.9, workers=1)
    assert (result.status, result.stop_reason) == ("FEASIBLE", "gap")
    assert result.gap is not None and 1e-6 < result.gap <= 0.9


def test_initial() -> None:
    """A first plan is the first in the trace, and all that is left if there is no time for more."""
    problem = small()
    n = problem.graph.n_ops
    plan = PartitionPlan(problem.graph.names, np.zeros(n, dtype=int), np.zeros(n, dtype=int))
    result = solve(problem, time_limit=60, initial=plan, workers=1)
    assert (result.trace[0].by, result.status) == ("initial", "OPTIMAL")
    late = solve(problem, time_limit=1e-9, initial=plan, workers=1)
    assert (late.status, late.stop_reason, [x.by for x in late.trace]) == ("FEASIBLE", "time limit", ["initial"])
    assert late.plan is not None and late.plan.device.tolist() == [0] * n
    best = result.plan
    again = solve(problem, time_limit=60, initial=best, workers=1)
    assert trace(again) == [(result.objective, "initial")]


def test_initial_of_other_times() -> None:
    """A step's plan made before ops took longer keeps devices and order; a plan that no times mend is refused."""
    problem = generate("layered", ops=12, layers=4, devices=3, objective="step", seed=5)
    plan = solve(problem, time_limit=5, method="heft").plan
    graph = replace(problem.graph, time=problem.graph.time * np.linspace(1, 3, problem.graph.n_ops))
    slower = replace(problem, graph=graph)
    assert plan is not None and not verify(slower, plan).ok
    result = solve(slower, time_limit=5, method="heft", initial=plan)
    assert result.trace[0].by == "initial" and "made for other times" in result.notes[0]
    elsewhere = replace(slower, graph=replace(graph, memory=np.full(graph.n_ops, 1e30)))
    with pytest.raises(InstanceError, match="initial: is not feasible"):
        solve(elsewhere, time_limit=5, initial=plan)


@pytest.mark.parametrize("method", [name for name in methods() if name != "bounds"])  # it only proves
def test_methods_improve_on_an_initial_plan(method: str) -> None:
    """Every method that makes plans takes one to start from, and finds a better one."""
    variant = methods()[method][-1]
    problem = small(variant)
    n = problem.graph.n_ops
    plan = PartitionPlan(problem.graph.names, np.zeros(n, dtype=int), np.zeros(n, dtype=int))
    result = solve(problem, time_limit=60, method=method, initial=plan, workers=1)
    assert result.trace[0].by == "initial"
    assert len(result.trace) > 1


def test_bad_initial() -> None:
    """A first plan that breaks a constraint is an error that says which."""
    problem = small()
    n = problem.graph.n_ops
    backwards = PartitionPlan(problem.graph.names, [1] + [0] * (n - 1), [1] + [0] * (n - 1))
    with pytest.raises(InstanceError, match="initial: is not feasible: contiguous"):
        solve(problem, time_limit=60, initial=backwards)
    with pytest.raises(InstanceError, match="initial: is not feasible: op 0 of the plan is x0"):
        solve(problem, time_limit=60, initial=PartitionPlan([f"x{i}" for i in range(n)], [0] * n, [0] * n))


@pytest.mark.parametrize("variant", VARIANTS)
def test_callbacks(variant: str) -> None:
    """Callbacks see every plan of the trace and every bound, in order."""
    seen: list[tuple[float | None, float | None]] = []
    result = solve(
        small(variant), time_limit=60, workers=1, callbacks=[lambda run: seen.append((run.objective, run.bound))]
    )
    plans = list(dict.fromkeys(objective for objective, _ in seen if objective is not None))
    assert plans == [found.objective for found in result.trace]
    bounds = [bound for _, bound in seen if bound is not None]
    assert bounds == sorted(bounds)
    assert min(bounds[-1], plans[-1]) == result.bound


@pytest.mark.parametrize(("method", "variant"), RUNS)
def test_callback_stops(method: str, variant: str) -> None:
    """A callback that returns true at the first plan ends the solve with that plan."""
    result = solve(
        small(variant), time_limit=60, method=method, workers=1, callbacks=[lambda run: run.objective is not None]
    )
    assert len(result.trace) == 1
    assert result.stop_reason in ("callback", "claimed", "proved")
    assert result.stop_reason == "callback" or result.status == "OPTIMAL"


@pytest.mark.parametrize(("method", "variant"), RUNS)
def test_callback_raises(method: str, variant: str) -> None:
    """What a callback raises reaches the caller, whichever thread it ran in."""

    def complain(run: Run) -> None:
        if run.trace:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve(small(variant), time_limit=60, method=method, workers=1, callbacks=[complain])


def test_an_infeasible_plan_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that makes a bad plan is a defect, not a result."""

    def bad(run: Run, reduced: ReducedThroughput) -> None:
        n = run.problem.graph.n_ops
        run.offer(PartitionPlan(run.problem.graph.names, [1] + [0] * (n - 1), [1] + [0] * (n - 1)), "bad")

    monkeypatch.setitem(METHODS, "bad", Method(bad))
    with pytest.raises(AssertionError, match="bad made an infeasible plan: contiguous"):
        solve(small(), time_limit=60, method="bad")


def test_a_wrong_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound above a verified plan is not believed: the result is not called optimal, and a note says why."""

    def liar(run: Run, reduced: ReducedThroughput) -> None:
        METHODS["pipedream"].run(run, reduced)
        assert run.objective is not None
        run.raise_bound(run.objective * 2, "liar")

    monkeypatch.setitem(METHODS, "liar", Method(liar))
    result = solve(small(), time_limit=60, method="liar")
    honest = solve(small(), time_limit=60, method="pipedream")
    assert (result.status, result.bound) == (honest.status, honest.bound)
    assert any(note.startswith("liar claimed the bound") for note in result.notes)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("instance", None),
        ("instance", "graph.json"),
        ("time_limit", 0),
        ("time_limit", -1.0),
        ("time_limit", float("nan")),
        ("time_limit", float("inf")),
        ("time_limit", "10"),
        ("time_limit", None),
        ("time_limit", True),
        ("objective", "latencies"),
        ("objective", 1),
        ("method", "magic"),
        ("method", ["cpsat"]),
        ("method", None),
        ("method", "convex"),
        ("seed", -1),
        ("seed", 1.5),
        ("seed", True),
        ("seed", 2**31),
        ("workers", 0),
        ("workers", 1.0),
        ("workers", "2"),
        ("gap", -0.1),
        ("gap", 1.0),
        ("gap", float("nan")),
        ("gap", "1%"),
        ("gap", None),
        ("initial", "plan.json"),
        ("initial", {}),
        ("callbacks", print),
        ("callbacks", [print, 3]),
    ],
)
def test_bad_arguments(argument: str, value: Any) -> None:
    """A bad argument is an error that names it and shows the value."""
    arguments: dict[str, Any] = {"instance": small(), "time_limit": 5} | {argument: value}
    with pytest.raises(InstanceError) as caught:
        solve(arguments.pop("instance"), **arguments)
    assert caught.value.field.startswith(argument)


def test_infeasible_has_a_reason() -> None:
    """What is proved infeasible says why if that is plain to see, has no plan and no gap."""
    problem = small()
    tight = replace(problem.cluster.device_types[0], memory=1.0)
    result = solve(replace(problem, cluster=replace(problem.cluster, device_types=(tight,))), time_limit=60)
    assert (result.status, result.stop_reason, result.plan, result.gap) == ("INFEASIBLE", "proved", None, None)
    assert result.notes[0].startswith("memory: ")


def test_one_op_one_device() -> None:
    """The smallest problem is solved by all."""
    problem = generate("layered", ops=1, layers=1, degree=1.0, training=False, devices=1)
    for method, variant in RUNS:
        result = solve(replace(problem, variant=variant), time_limit=60, method=method, workers=1)
        assert result.objective == problem.graph.time[0, 0]


def test_work_that_takes_no_time() -> None:
    """Ops that take no time have the optimum 0, which is reached and proved."""
    problem = small()
    graph = replace(problem.graph, time=np.zeros_like(problem.graph.time))
    for method, variant in RUNS:
        result = solve(PartitionProblem(graph, problem.cluster, variant), time_limit=60, method=method, workers=1)
        assert (result.objective, result.gap, result.status) == (0.0, 0.0, "OPTIMAL")


@pytest.mark.parametrize(("limit", "collects"), [(0.5, False), (5.0, True)])
def test_no_garbage_is_collected_amid_a_short_solve(limit: float, collects: bool) -> None:
    """With everything loaded a collection takes a tenth of a second; after the solve it is as before."""
    seen: list[bool] = []
    solve(small(), time_limit=limit, workers=1, callbacks=[lambda run: bool(seen.append(gc.isenabled()))])
    assert set(seen) == {collects} and gc.isenabled()
