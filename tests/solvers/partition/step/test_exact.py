"""CP-SAT for step: each constraint by hand; a plan to start from, parts, equal ops, whole seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from gangplan.instances import Cluster, DeviceType, Level, StepPlan, StepProblem, TreeTopology, verify
from gangplan.instances.generators import generate
from gangplan.instances.graph import with_backward
from gangplan.instances.readers.shops import parse_jobshop
from gangplan.solvers import Run, cpsat_solver
from gangplan.solvers.method import suite
from gangplan.solvers.partition.step import exact
from gangplan.solvers.partition.step.exact import equal_ops, parts_of, renamed
from gangplan.solvers.partition.step.model import Prepared, prepare
from gangplan.solvers.partition.tiny import random_step as random_problem

from ....seeds import examples
from .conftest import cluster, graph

TOOLS = suite("step")


class Watch(cp_model.CpSolverSolutionCallback):
    """Remembers the objective of the first solution."""

    objective: float | None = None

    def on_solution_callback(self) -> None:
        """Keep it and stop."""
        self.objective = self.objective_value if self.objective is None else self.objective
        self.stop_search()


def hinted(problem: StepProblem, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float] | None:
    """Return the first makespan that CP-SAT finds from HEFT's plan, and that plan's, in seconds; else `None`."""
    run, first = Run(problem, time_limit=60), list[float]()
    p = TOOLS.prepare(run)
    if run.infeasible:
        return None
    TOOLS.methods["heft"].run(run, p)
    if not run.objective:
        return None

    def start(run: Run, solver: Any, model: Any, scale: float, plan: Any, constant: float, *, by: str) -> None:
        # nothing but the given values: what they leave out, propagation must find
        solver.parameters.fix_variables_to_their_hinted_value = True
        watch = Watch()
        assert solver.solve(model, watch) in (cp_model.FEASIBLE, cp_model.OPTIMAL)
        assert watch.objective is not None
        first.append(watch.objective / scale)
        run.stop_reason = "time limit"

    monkeypatch.setattr(cpsat_solver, "minimise", start)
    makespan = run.objective
    exact.cpsat(run, p)
    return (first[0], makespan) if first else None


def test_starts_of_tiny_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is a solution of the model in each of 60 problems in which every constraint may bind, links included."""
    found = [hinted(random_problem(seed), monkeypatch) for seed in range(60)]
    assert sum(pair is not None for pair in found) > 15
    assert all(first == pytest.approx(makespan, rel=1e-6) for first, makespan in filter(None, found))


@pytest.mark.parametrize(
    ("kind", "options", "servers", "contention"),
    [
        ("layered", {"ops": 40, "layers": 10}, 2, False),
        ("layered", {"ops": 20, "layers": 5}, 2, True),
        ("fork_join", {"stages": 6}, 1, False),
        ("fork_join", {"stages": 4}, 2, True),
        ("pipeline", {"stages": 5, "micro_batches": 3}, 2, False),
        ("pipeline", {"stages": 4, "micro_batches": 2}, 2, True),
    ],
)
def test_starts_of_larger_problems(
    kind: str, options: dict[str, Any], servers: int, contention: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is a solution with parts, micro-batches, levels and links too."""
    levels = (Level("server", 300e9), Level("rack", 25e9))
    gpus = Cluster(
        (DeviceType("A100"),), np.zeros(4, dtype=np.int32), TreeTopology.regular(levels, (4 // servers, servers))
    )
    found = hinted(StepProblem(generate(kind, **options).graph, gpus, contention), monkeypatch)
    assert found is not None
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def whole(p: Prepared) -> list[list[int]]:
    """Return the step uncut."""
    return [p.order.tolist()]


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32))
def test_parts_do_not_change_the_optimum(seed: int) -> None:
    """The model finds the optimum with and without what makes it fast, and its plan is feasible."""
    problem = random_problem(seed % 100_000)
    best = TOOLS.optimum(problem)
    for cut in (parts_of, whole):
        run = Run(problem, time_limit=60)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exact, "parts_of", cut)
            exact.cpsat(run, prepare(problem))
        assert run.infeasible == (best is None)
        if best is not None:
            assert run.stop_reason == "claimed"
            assert verify(problem, run.plan).objective == pytest.approx(best, rel=1e-6, abs=1e-12)


def test_parts_of_a_diamond() -> None:
    """a, the branches b and c, and d: all others come after a and before d, the branches belong to a's part."""
    p = prepare(StepProblem(graph([1, 1, 1, 1], [(0, 1), (0, 2), (1, 3), (2, 3)]), cluster(2)))
    assert [set(part) for part in parts_of(p)] == [{0, 1, 2}, {3}]


def test_an_edge_past_a_part() -> None:
    """In a chain with a short cut each op is a part; with contention none begins where an edge passes by."""
    chain = graph([1, 1, 1], [(0, 1), (1, 2), (0, 2)], 1.0)
    assert parts_of(prepare(StepProblem(chain, cluster(2)))) == [[0], [1], [2]]
    assert parts_of(prepare(StepProblem(chain, cluster(2), True))) == [[0, 1], [2]]


def test_sources_before_the_first_part() -> None:
    """Two sources and their sum: the sources are a part."""
    p = prepare(StepProblem(graph([1, 1, 1], [(0, 2), (1, 2)]), cluster(2)))
    assert [set(part) for part in parts_of(p)] == [{0, 1}, {2}]


def test_reach() -> None:
    """What comes before and after an op includes what is further away."""
    above, below = prepare(StepProblem(graph([1, 1, 1], [(0, 1), (1, 2)]), cluster(1))).reach
    assert (above, below) == ([0b000, 0b001, 0b011], [0b110, 0b100, 0b000])


def test_ranks_of_devices() -> None:
    """In two servers of two the second device needs one group before it, the last one two."""
    p = prepare(StepProblem(graph([1], []), cluster(4, servers=2)))
    assert renamed(p, []) == [(0, 0, 0), (1, 1, 1), (2, 2, 1), (3, 3, 2)]
    flat = prepare(StepProblem(graph([1], []), cluster(3)))
    assert [earlier for *_, earlier in renamed(flat, [])] == [0, 1, 2]


def test_renamed_devices() -> None:
    """The second server is called the first if it is used first, and its devices keep together."""
    p = prepare(StepProblem(graph([1], []), cluster(4, servers=2)))
    assert {d: name for d, name, _ in renamed(p, [3, 0, 2])} == {3: 0, 2: 1, 0: 2, 1: 3}


def test_servers_of_unlike_shape_are_no_siblings() -> None:
    """A server of one and a server of two devices keep their names."""
    topology = TreeTopology((Level("server", 1.0), Level("rack", 0.5)), np.array([[0, 1, 1], [0, 0, 0]]))
    gpus = Cluster((DeviceType("gpu"),), np.zeros(3, dtype=np.int32), topology)
    p = prepare(StepProblem(graph([1], []), gpus))
    assert renamed(p, []) == [(0, 0, 0), (1, 1, 0), (2, 2, 1)]
    assert {d: name for d, name, _ in renamed(p, [2])} == {2: 1, 1: 2, 0: 0}


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 2**32))
def test_renaming_is_an_automorphism(seed: int) -> None:
    """Renamed devices are of the same type and as far apart, and the used ones within their ranks."""
    p = prepare(random_problem(seed % 1000, devices=6))
    used = np.random.default_rng(seed).integers(0, p.n_devices, 8).tolist()
    name = {d: new for d, new, _ in renamed(p, used)}
    new = np.array([name[d] for d in range(p.n_devices)])
    assert sorted(new.tolist()) == list(range(p.n_devices))
    assert (p.type_of[new] == p.type_of).all()
    assert (p.level[np.ix_(new, new)] == p.level).all()
    earlier = {d: e for _, d, e in renamed(p, [])}
    assert all(earlier[name[d]] <= i for i, d in enumerate(used))


def test_a_level_may_be_slower_than_the_one_above() -> None:
    """b, of 4 s, is sent over the rack in 1 s, not over the server's own links in 3; c stays with a."""
    levels = (Level("server", 1 / 3), Level("rack", 1.0))
    topology = TreeTopology.regular(levels, (2, 2))
    gpus = Cluster((DeviceType("gpu"),), np.zeros(4, dtype=np.int32), topology)
    run = Run(StepProblem(graph([1, 4, 4], [(0, 1), (0, 2)], 1.0), gpus), time_limit=60)
    exact.cpsat(run, prepare(run.problem))
    assert run.objective == pytest.approx(6.0)
    assert run.bound == pytest.approx(6.0)


def test_a_shop_is_in_whole_seconds_without_linear_programmes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a shop a tick is a second and no worker has linear programmes; other steps have ticks and CP-SAT's options."""
    found: list[tuple[float, int, list[str]]] = []

    def note(run: Run, solver: Any, model: Any, scale: float, *_: object, by: str) -> None:
        found.append((scale, solver.parameters.linearization_level, [*solver.parameters.extra_subsolvers]))

    monkeypatch.setattr(cpsat_solver, "minimise", note)
    other = generate("layered", ops=20, layers=4, devices=3, objective="step")
    for problem in (parse_jobshop("2 2\n0 3 1 2\n1 2 0 4\n"), parse_jobshop("1 2\n0 3 1 2.5\n"), other):
        exact.cpsat(Run(problem, time_limit=60), prepare(problem))
    (one, *_), (half, *_), _ = found
    assert (one, half > 1000) == (1.0, True)
    assert [options for _, *options in found] == [[0, ["no_lp"]], [0, ["no_lp"]], [1, []]]


def test_micro_batches_are_equal() -> None:
    """The ops of a pipeline's micro-batches are alike, one by one; with other times none are."""
    ops, gpus = generate("pipeline", stages=3, micro_batches=4).graph, generate("pipeline").cluster
    assert equal_ops(prepare(StepProblem(ops, gpus))) == [[v, v + 6, v + 12, v + 18] for v in range(6)]
    apart = graph([1, 1, 2], [], colocation=[0, 0, 0])
    assert equal_ops(prepare(StepProblem(apart, cluster(2)))) == [[0, 1]]
    assert equal_ops(prepare(StepProblem(graph([1, 1], []), cluster(2)))) == []


def solved(problem: StepProblem) -> Run:
    """Solve within a minute."""
    run = Run(problem, time_limit=60)
    prepared = TOOLS.prepare(run)
    if not run.infeasible:
        TOOLS.methods["cpsat"].run(run, prepared)
    return run


def check(problem: StepProblem, optimum: float) -> StepPlan:
    """Assert that the optimum is found and proved, and return the plan."""
    run = solved(problem)
    assert run.objective == pytest.approx(optimum, rel=1e-6)
    assert run.bound is None or run.bound <= optimum * (1 + 1e-6)
    assert run.stop_reason == "claimed"
    plan: StepPlan = run.plan
    return plan


def test_solvers_agree() -> None:
    """CP-SAT and enumeration find the same optimum of 100 tiny problems, or the same none."""
    none = 0
    for seed in range(100):
        problem = random_problem(seed)
        best = TOOLS.optimum(problem)
        run = solved(problem)
        assert run.stop_reason == "claimed", seed
        if best is None:
            assert run.infeasible, seed
        else:
            assert run.objective == pytest.approx(best, rel=1e-6), seed
        none += best is None
    assert 0 < none < 50


def test_one_at_a_time() -> None:
    """(D) three ops of 2 s on two devices take 4 s: two of them share a device, though nothing is sent."""
    plan = check(StepProblem(graph([2, 2, 2], []), cluster(2)), 4.0)
    assert len(set(plan.device.tolist())) == 2


def test_nothing_in_the_middle_of_an_op() -> None:
    """(D) an op of no time waits too: a device busy with b lets the colocated c start only before or after it.

    a (1 s) sends to c at once, which takes no time; c and b (4 s) share the only device b runs on. b needs nothing,
    so it starts at 0 and c follows at 4, then d (2 s) ends at 6; c at 1 needs b to start at 1: b ends at 5, d at 3.
    """
    problem = StepProblem(graph([1, 4, 0, 2], [(0, 2), (2, 3)], colocation=[-1, 0, 0, -1]), cluster(3))
    check(problem, 5.0)


def test_delay_by_level() -> None:
    """(P) with two servers of one device each, 1 byte takes 4 s; with one server of two it takes 1 s.

    a (1 s) feeds b and c (3 s each). On one device they take 7 s; apart within a server 1 + 1 + 3 = 5 s, and between
    servers 1 + 4 + 3 = 8 s, so then one device is best.
    """
    fork = graph([1, 3, 3], [(0, 1), (0, 2)], 1.0)
    check(StepProblem(fork, cluster(2)), 5.0)
    check(StepProblem(fork, cluster(2, servers=2)), 7.0)


def test_slow_inside_fast_between() -> None:
    """(P) nobody promises that delays grow with the level: here 1 byte takes 4 s in a server and 1 s between two."""
    fork = graph([1, 3, 3], [(0, 1), (0, 2)], 1.0)
    plan = check(StepProblem(fork, cluster(4, servers=2, near=0.25, far=1.0)), 5.0)
    assert set((plan.device // 2).tolist()) == {0, 1}


def test_memory() -> None:
    """(M) a chain of two ops of 2 bytes on devices of 3 has to be cut: 1 + 1 s and 1 s of sending; 2 s with 4 bytes."""
    chain = graph([1, 1], [(0, 1)], 1.0, memory=[2, 2])
    check(StepProblem(chain, cluster(2, memory=3)), 3.0)
    check(StepProblem(chain, cluster(2, memory=4)), 2.0)


def test_colocation() -> None:
    """(G) two ops of 2 s side by side take 2 s, and 4 s if they are of one class."""
    check(StepProblem(graph([2, 2], []), cluster(2)), 2.0)
    check(StepProblem(graph([2, 2], [], colocation=[0, 0]), cluster(2)), 4.0)


def test_types() -> None:
    """(A) an op that only the slow type runs is there, the other where it is fast: max(3, 1) s."""
    ops = graph([1, 1], [])
    ops = replace(ops, device_types=("gpu", "old"), time=np.array([[1, np.inf], [5, 3]]))
    kinds = (DeviceType("gpu"), DeviceType("old"))
    level = TreeTopology.regular((Level("server", 1.0),), (2,))
    plan = check(StepProblem(ops, Cluster(kinds, np.array([1, 0], dtype=np.int32), level)), 3.0)
    assert plan.device.tolist() == [1, 0]


def test_links_carry_one_thing_at_a_time() -> None:
    """(K) a and b (1 s) on one device, c and d (5 s) on two others: with contention one transfer of 1 s waits.

    Memory keeps a and b with nothing else, and c and d apart. a ends at 1, b at 2; the outputs leave one device, from 1
    to 2 and from 2 to 3, so c starts at 2 and d at 3 anyway. Outputs of 2 s leave from 1 to 3 and, waiting for the
    link, from 3 to 5: d ends at 10; without contention at 2 + 2 + 5 = 9.
    """
    for contention, size, optimum in ((True, 1.0, 8.0), (True, 2.0, 10.0), (False, 2.0, 9.0)):
        pairs = graph([1, 1, 5, 5], [(0, 2), (1, 3)], size, memory=[1, 1, 2, 2], colocation=[0, 0, -1, -1])
        check(StepProblem(pairs, cluster(3, memory=2), contention), optimum)


def test_no_plan() -> None:
    """Three ops of 2 bytes do not fit on two devices of 3, though together they have the room."""
    run = solved(StepProblem(graph([1, 1, 1], [], memory=[2, 2, 2]), cluster(2, memory=3)))
    assert run.plan is None
    assert run.infeasible


def test_pipeline_of_two_stages() -> None:
    """Two stages of 1 s forward and 2 s back, two micro-batches, nothing sent: 9 s on two devices.

    The last stage has 2 + 4 s of work, none before 1 s and 2 s of the other's after it: 1 + 6 + 2 = 9 s.
    """
    one = with_backward(graph([1, 1], [(0, 1)]), np.array([[2.0, 2.0]]), np.zeros(2))
    n = one.n_ops
    ops = replace(
        one,
        names=tuple(f"{name}{k}" for k in range(2) for name in one.names),
        **{field: np.tile(getattr(one, field), 2) for field in ("time", "memory", "parameter_bytes")},
        **{field: np.tile(getattr(one, field), 2) for field in ("activation_bytes", "edge_bytes", "backward")},
        source=np.concatenate([one.source, one.source + n]),
        target=np.concatenate([one.target, one.target + n]),
        colocation=np.tile(one.colocation, 2),
        twin=np.concatenate([one.twin, one.twin + n]),
    )
    check(StepProblem(ops, cluster(2)), 9.0)
