"""Replicated stages: the published optima, and what any optimum has to obey."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gangplan import Result, Status, read, solve
from gangplan.instances import OpGraph, StagesPlan, StagesProblem, megatron, verify
from gangplan.instances.generators import generate
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.stages.family import mixed, thinned
from gangplan.solvers.partition.stages.recurrence import deal
from gangplan.solvers.partition.stages.reduced import ReducedStages
from tests.seeds import some

GIB = 2.0**30
TOOLS = suite("stages")


def solved(problem: StagesProblem, method: str = "auto") -> Result:
    """Solve on one core; proofs end it, of gnmt after 8 s of the processor, however busy the machine is."""
    return solve(problem, time_limit=600, method=method, workers=1)


def shown(problem: StagesProblem, plan: StagesPlan) -> list[tuple[int, int]]:
    """Return the number of forward ops and of devices of each stage."""
    forward = ~problem.graph.backward
    return [(int((plan.stage[forward] == s).sum()), int((plan.serves == s).sum())) for s in range(len(plan.degree))]


def test_exact_on_many_tiny_problems() -> None:
    """The recurrence agrees with the referee, which looks at every plan, on problems where each constraint may bind."""
    outcomes = set()
    for seed in some(range(100, 300), 4):
        problem = TOOLS.random_problem(seed, "")
        best, run = TOOLS.optimum(problem), Run(problem, time_limit=60)
        reduced = TOOLS.prepare(run)
        # with a plan to beat and without one
        for name in ("chain", "ideals")[seed % 2 :]:
            if not run.stopped:
                TOOLS.methods[name].run(run, reduced)
        assert run.infeasible == (best is None), seed
        if best is not None:
            assert run.objective == pytest.approx(best, rel=1e-9), seed
            assert best == 0 or run.bound == pytest.approx(best, rel=1e-6), seed
        outcomes.add((best is None, problem.menu is None, problem.recompute, len(problem.members())))
    assert {x[0] for x in outcomes} == {x[1] for x in outcomes} == {x[2] for x in outcomes} == {True, False}
    assert {x[3] for x in outcomes} == {1, 2, 3}


def test_published_two_servers_of_eight(data: Path) -> None:
    """vgg16: 24 ops on 7 devices and 16 on one of each server, 0.078392 s a sample, 8.579 times one device."""
    file = data / "pipedream" / "vgg16.txt"
    problem = read(file, objective="stages", cluster="2x8", bandwidth=(4 * GIB, 2 * GIB))
    assert isinstance(problem, StagesProblem)
    result = solved(problem)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(0.078392, abs=5e-7)
    assert problem.time().sum() / result.objective == pytest.approx(8.579, abs=5e-4)
    assert isinstance(result.plan, StagesPlan)
    assert shown(problem, result.plan) == [(24, 14), (16, 2)]


@pytest.mark.parametrize(
    ("name", "faster", "devices"),
    [("gnmt", 3.4566, [1, 1, 1, 1]), ("alexnet", 2.8898, [3, 1]), ("resnet50", 3.7066, [3, 1])],
)
def test_published_four_devices(data: Path, name: str, faster: float, devices: list[int]) -> None:
    """The speed-up of four devices at 2 GiB/s, and how many of them each stage has."""
    problem = read(data / "pipedream" / f"{name}.txt", objective="stages", devices=4, bandwidth=2 * GIB)
    assert isinstance(problem, StagesProblem)
    result = solved(problem)
    assert result.status is Status.OPTIMAL
    assert result.objective is not None
    assert problem.time().sum() / result.objective == pytest.approx(faster, abs=5e-5)
    assert isinstance(result.plan, StagesPlan)
    assert [count for _, count in shown(problem, result.plan)] == devices


def test_resnet50_on_sixteen_devices_in_seconds(data: Path, spent: Callable[[], float]) -> None:
    """PipeDream's own optimiser takes 82 s; this one has 30 of the processor."""
    file = data / "pipedream" / "resnet50.txt"
    problem = read(file, objective="stages", cluster="2x8", bandwidth=(4 * GIB, 2 * GIB))
    result = solve(problem, time_limit=60, workers=1)
    assert result.status is Status.OPTIMAL
    assert spent() < 30


def test_large_graphs_get_a_plan_and_a_bound(data: Path) -> None:
    """inception_v3 has too many ideals: the plan along a chain is verified, the bound is the work."""
    problem = read(data / "pipedream" / "inception_v3.txt", objective="stages", devices=8, bandwidth=2 * GIB)
    result = solve(problem, time_limit=10, workers=1)
    assert result.status is Status.FEASIBLE
    assert result.bound == pytest.approx(problem.time().sum() / 8)
    assert result.gap is not None
    assert result.gap < 0.2
    assert any("ideals" in note for note in result.notes)


def training(seed: int = 1, **changes: object) -> StagesProblem:
    """Make a problem of a random graph of 12 forward ops on 2 servers of 4."""
    made = generate("layered", ops=12, layers=8, devices=8, seed=seed)
    problem = TOOLS.random_problem(0, "")
    weights = np.where(made.graph.backward, 0.0, 1e5 * (1 + np.arange(made.graph.n_ops) % 5))
    graph: OpGraph = replace(made.graph, parameter_bytes=weights)
    flat = replace(problem, graph=graph, cluster=made.cluster, memory_model="none", menu=None, recompute=False)
    tree = read_tree(flat, (4, 2), (1e10, 1e9))
    return replace(tree, activations=True, stashing=True, **changes)


def read_tree(problem: StagesProblem, members: tuple[int, ...], speeds: tuple[float, ...]) -> StagesProblem:
    """Return the problem on another tree of its devices."""
    from gangplan.instances.readers.overrides import arranged

    return arranged(problem, members, speeds)


def test_more_devices_never_hurt() -> None:
    """A group may leave members idle, so a larger one is at least as good."""
    problem = training()
    times = [solved(read_tree(problem, (4, servers), (1e10, 1e9))).objective for servers in (1, 2, 3)]
    assert all(a is not None and b is not None and b <= a * (1 + 1e-9) for a, b in pairwise(times))
    assert times[0] != times[-1]


def test_a_menu_never_hurts() -> None:
    """More degrees are more choices, and where sharing is nearly free they are taken."""
    problem = training()
    menu = megatron(problem.graph, problem.cluster.device_types[problem.kind].name, (1, 2, 4))
    whole = solved(problem)
    shared = solved(replace(problem, menu=menu))
    free = solved(replace(problem, menu=replace(menu, sync_bytes=np.zeros_like(menu.sync_bytes))))
    assert whole.objective is not None
    assert shared.objective is not None
    assert free.objective is not None
    assert free.objective <= shared.objective * (1 + 1e-9) <= whole.objective * (1 + 1e-8)
    assert free.objective < whole.objective
    assert isinstance(free.plan, StagesPlan)
    assert free.plan.degree.max() > 1


def test_memory_costs_time_and_recomputation_buys_it_back() -> None:
    """Less memory gives slower plans until there is none; recomputation then finds one."""
    problem = training(memory_model="1f1b")
    graph = problem.graph
    found: list[float] = []
    recomputed = 0
    for share in (2.0, 0.5, 0.3, 0.15, 0.02):
        kinds = tuple(replace(kind, memory=share * float(graph.memory.sum())) for kind in problem.cluster.device_types)
        small = replace(problem, cluster=replace(problem.cluster, device_types=kinds))
        result = solved(small)
        assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if result.objective is not None:
            assert not found or result.objective >= found[-1] * (1 - 1e-9)
            found.append(result.objective)
        elif solved(replace(small, recompute=True)).objective is not None:
            recomputed += 1
    assert len(found) < 5
    assert found[-1] > found[0]
    assert recomputed


def test_renamed_devices_change_nothing() -> None:
    """Another numbering of the devices of a tree gives a plan as good."""
    problem = training()
    topology = problem.cluster.topology
    mixed = np.random.default_rng(5).permutation(8)
    renamed = replace(topology, group=topology.group[:, mixed])
    other = replace(problem, cluster=replace(problem.cluster, topology=renamed))
    assert solved(other).objective == solved(problem).objective


def test_lines_of_ideals_are_chains_of_ideals() -> None:
    """A thinned line keeps to its size and its ends."""
    problem = training()
    units = ReducedStages(problem).units
    for most in (2, 3, 7, 1000):
        family = thinned(units, most)
        assert 2 <= len(family) <= max(2, min(most, units.order.n_groups + 1))
        assert not family.bits[0].any()
        assert family.bits[-1].all()
        assert family.linear


def test_families_of_ideals_look_at_the_clock() -> None:
    """What is made of the ideals of a large graph, which takes seconds, ends when the run has stopped."""
    problem = training()
    units = ReducedStages(problem).units

    def after(looks: int) -> Callable[[], bool]:
        left = iter(range(looks))
        return lambda: next(left, None) is None

    for looks in (0, 3, 6):  # within the sums, and before the outputs that cross
        with pytest.raises(TimeoutError):
            mixed(units, 0, after(looks))
        with pytest.raises(TimeoutError):
            thinned(units, 7, after(looks))


def test_dealt_devices_are_read_back() -> None:
    """The devices of replicas lie side by side, and members left over are idle."""
    problem = training()
    degree = np.array([2, 1, 1], dtype=np.int32)
    nest = ((1, ((1, 0), (2, 1))), (1, ((3, 2),)))
    assert deal(problem, nest, degree).tolist() == [0, 0, 1, 1, 2, 2, 2, -1]


def test_initial_plan_is_kept_if_it_is_best() -> None:
    """A solve that starts from the optimum proves it and does not lose it."""
    problem = training()
    first = solved(problem)
    assert first.plan is not None
    again = solve(problem, time_limit=60, workers=1, initial=first.plan)
    assert again.objective == first.objective
    assert again.trace[0].by == "initial"
    assert verify(problem, again.plan).objective == first.objective


def test_less_than_all_ops_need_is_no_search() -> None:
    """If all devices together have too little memory, whatever the graph, that is proved before any ideal is listed."""
    graph = generate("layered", ops=300, layers=30, training=False, devices=2, seed=1).graph
    problem = StagesProblem(graph, training().cluster)
    bytes_ = 0.9 * float(graph.memory.sum()) / problem.cluster.n_devices
    kinds = tuple(replace(kind, memory=bytes_) for kind in problem.cluster.device_types)
    found = solve(replace(problem, cluster=replace(problem.cluster, device_types=kinds)), time_limit=60, workers=1)
    assert found.status is Status.INFEASIBLE and any("all devices together" in note for note in found.notes)


def test_infeasible_says_why() -> None:
    """What no device has room for is named, and memory alone contradicts it."""
    problem = training(memory_model="1f1b")
    kinds = tuple(replace(kind, memory=10.0) for kind in problem.cluster.device_types)
    result = solved(replace(problem, cluster=replace(problem.cluster, device_types=kinds)))
    assert result.status is Status.INFEASIBLE
    assert len(result.conflict) == 1
    assert result.conflict[0].startswith("memory:")
