"""What the CP-SAT model is made of: hints it accepts, segments, symmetry, ticks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from gangplan.instances import Cluster, DeviceType, Level, StepPlan, StepProblem, TreeTopology, verify
from gangplan.instances.generators import generate
from gangplan.instances.readers.shops import parse_jobshop
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.step import cpsat
from gangplan.solvers.partition.step.cpsat import DeviceTree, StepFormulation, ceiling_of, equal_parts, in_ticks
from gangplan.solvers.partition.step.model import Prepared, prepare
from gangplan.solvers.partition.step.segments import Segments, segments
from gangplan.solvers.partition.tiny import random_step as random_problem

from ....seeds import examples
from .conftest import cluster, graph

TOOLS = suite("step")
SEEDS = st.integers(0, 2**32)


def planned(problem: StepProblem) -> tuple[Prepared, StepPlan | None, float]:
    """Return a plan by HEFT and its makespan."""
    run = Run(problem, time_limit=60)
    p = TOOLS.prepare(run)
    if not run.infeasible:
        TOOLS.methods["heft"].run(run, p)
    return p, run.plan, run.objective or 0.0


class First(cp_model.CpSolverSolutionCallback):
    """Remembers the objective of the first solution."""

    def __init__(self) -> None:
        super().__init__()
        self.objective: float | None = None

    def on_solution_callback(self) -> None:
        """Keep it and stop."""
        self.objective = self.objective_value if self.objective is None else self.objective
        self.stop_search()


def hinted(model: StepFormulation) -> tuple[list[str], float | None]:
    """Return what CP-SAT says of the hint, and the objective of its first solution."""
    solver, first, lines = cp_model.CpSolver(), First(), list[str]()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 5
    solver.parameters.log_search_progress = True
    solver.parameters.log_to_stdout = False
    solver.log_callback = lines.append
    solver.solve(model.base.model, first)
    return [line for line in lines if "hint" in line], first.objective


def check_hint(problem: StepProblem) -> bool:
    """Assert that CP-SAT takes the hint as complete and starts from it; return whether there was a plan to hint at."""
    p, plan, makespan = planned(problem)
    if plan is None or makespan == 0:
        return False
    model = StepFormulation(p, makespan, plan)
    said, first = hinted(model)
    assert any("The solution hint is complete and is feasible" in line for line in said), said
    # nothing in ticks is longer than in seconds; and nothing worse than the plan is allowed
    assert first is not None
    assert first <= model.base.ceiling
    return True


def test_hints_of_tiny_problems() -> None:
    """CP-SAT accepts the hint of each of 60 problems in which every constraint may bind, links included."""
    assert sum(check_hint(random_problem(seed)) for seed in range(60)) > 30


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
def test_hints_of_larger_problems(kind: str, options: dict[str, Any], servers: int, contention: bool) -> None:
    """The hint is complete with segments, micro-batches, levels and links too, and is the first solution."""
    ops = generate(kind, **options).graph
    levels = (Level("server", 300e9), Level("rack", 25e9))
    topology = TreeTopology.regular(levels, (4 // servers, servers))
    gpus = Cluster((DeviceType("A100"),), np.zeros(4, dtype=np.int32), topology)
    problem = StepProblem(ops, gpus, contention)
    assert check_hint(problem)
    p, plan, makespan = planned(problem)
    assert plan is not None
    model = StepFormulation(p, makespan, plan)
    device, start, _ = model.in_order(plan)
    end = start + model.ticks.time[p.type_of[device], np.arange(p.n)]
    assert hinted(model)[1] == end.max()
    assert end.max() == pytest.approx(makespan * model.scale, rel=1e-6)


def whole(p: Prepared) -> Segments:
    """Return the step uncut."""
    return Segments((), np.zeros(p.n, dtype=np.int32), 1)


def test_a_wrong_hint_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of hints can fail: two ops at once on one device make CP-SAT say something else."""
    monkeypatch.setattr(cpsat, "segments", whole)
    p, plan, makespan = planned(StepProblem(graph([1, 2], []), cluster(1)))
    assert plan is not None
    model = StepFormulation(p, makespan, plan)
    model.base.model.clear_hints()
    for variable in model.base.start:
        model.base.model.add_hint(variable, 0)
    assert not any("complete and is feasible" in line for line in hinted(model)[0])


@settings(max_examples=examples(40), deadline=None)
@given(SEEDS)
def test_neither_symmetry_nor_segments_change_the_optimum(seed: int) -> None:
    """The model finds the same optimum with and without what makes it fast, and its plan is feasible."""
    problem = random_problem(seed % 100_000)
    best = TOOLS.optimum(problem)
    p = prepare(problem)
    for symmetry in (StepFormulation._symmetry, lambda model: None):
        for cut in (segments, whole):
            if not p.allowed.any(axis=1).all():
                continue
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(StepFormulation, "_symmetry", symmetry)
                patch.setattr(cpsat, "segments", cut)
                model = StepFormulation(p, None, None)
            solver = cp_model.CpSolver()
            solver.parameters.num_workers = 1
            solver.parameters.presolve_inclusion_work_limit = 0
            status = solver.solve(model.base.model)
            assert (status == cp_model.INFEASIBLE) == (best is None)
            if best is not None:
                assert status == cp_model.OPTIMAL
                assert solver.objective_value / model.scale <= best * (1 + 1e-9)
                verdict = verify(problem, model.plan(solver.value))
                assert verdict.objective == pytest.approx(best, rel=1e-6, abs=1e-12)


def test_segments_of_a_diamond() -> None:
    """a, the branches b and c, and d: a and d are gates, the branches belong to a's segment."""
    p = prepare(StepProblem(graph([1, 1, 1, 1], [(0, 1), (0, 2), (1, 3), (2, 3)]), cluster(2)))
    found = segments(p)
    assert found.gates == (0, 3)
    assert found.of.tolist() == [0, 0, 0, 1]
    assert found.members == ((0, 1, 2), (3,))


def test_an_edge_past_a_gate() -> None:
    """In a chain with a short cut all ops are gates; with contention the one that is passed by is none."""
    chain = graph([1, 1, 1], [(0, 1), (1, 2), (0, 2)], 1.0)
    assert segments(prepare(StepProblem(chain, cluster(2)))).gates == (0, 1, 2)
    assert segments(prepare(StepProblem(chain, cluster(2), True))).gates == (0, 2)


def test_sources_before_the_first_gate() -> None:
    """Two sources and their sum: the sources are a segment without a gate."""
    found = segments(prepare(StepProblem(graph([1, 1, 1], [(0, 2), (1, 2)]), cluster(2))))
    assert (found.gates, found.first, found.of.tolist()) == ((2,), 1, [0, 0, 1])
    assert found.gate(0) is None and found.gate(1) == 2


def test_reach() -> None:
    """What comes before and after an op includes what is further away."""
    above, below = prepare(StepProblem(graph([1, 1, 1], [(0, 1), (1, 2)]), cluster(1))).reach
    assert (above, below) == ([0b000, 0b001, 0b011], [0b110, 0b100, 0b000])


def test_ranks_of_devices() -> None:
    """In two servers of two the second device needs one group before it, the last one two."""
    p = prepare(StepProblem(graph([1], []), cluster(4, servers=2)))
    assert DeviceTree(p).ranks().tolist() == [0, 1, 1, 2]
    flat = prepare(StepProblem(graph([1], []), cluster(3)))
    assert DeviceTree(flat).ranks().tolist() == [0, 1, 2]


def test_renamed_devices() -> None:
    """The second server is called the first if it is used first, and its devices keep together."""
    tree = DeviceTree(prepare(StepProblem(graph([1], []), cluster(4, servers=2))))
    assert tree.canonical([3, 0, 2]) == {3: 0, 2: 1, 0: 2, 1: 3}


def test_servers_of_unlike_shape_are_no_siblings() -> None:
    """A server of one and a server of two devices keep their names."""
    level = (Level("server", 1.0), Level("rack", 0.5))
    topology = TreeTopology(level, np.array([[0, 1, 1], [0, 0, 0]]))
    gpus = Cluster((DeviceType("gpu"),), np.zeros(3, dtype=np.int32), topology)
    tree = DeviceTree(prepare(StepProblem(graph([1], []), gpus)))
    assert tree.ranks().tolist() == [0, 0, 1]
    assert tree.canonical([2]) == {2: 1, 1: 2, 0: 0}


@settings(max_examples=examples(50), deadline=None)
@given(SEEDS)
def test_renaming_is_an_automorphism(seed: int) -> None:
    """Renamed devices are of the same type and as far apart, and the used ones within their ranks."""
    rng = np.random.default_rng(seed)
    problem = random_problem(seed % 1000, devices=6)
    p = prepare(problem)
    used = rng.integers(0, p.n_devices, 8).tolist()
    tree = DeviceTree(p)
    name = tree.canonical(used)
    new = np.array([name[d] for d in range(p.n_devices)])
    assert sorted(new.tolist()) == list(range(p.n_devices))
    assert (p.type_of[new] == p.type_of).all()
    assert (p.level[np.ix_(new, new)] == p.level).all()
    rank = tree.ranks()
    assert all(rank[name[d]] <= i for i, d in enumerate(used))


def test_micro_batches_are_equal_parts() -> None:
    """The micro-batches of a pipeline are one family; with other times they are none."""
    ops = generate("pipeline", stages=3, micro_batches=4).graph
    gpus = generate("pipeline").cluster
    ((*parts,),) = equal_parts(prepare(StepProblem(ops, gpus)))
    assert parts == [list(range(6 * k, 6 * k + 6)) for k in range(4)]
    apart = graph([1, 1, 2], [], colocation=[0, 0, 0])
    assert equal_parts(prepare(StepProblem(apart, cluster(2)))) == [[[0], [1]]]
    assert equal_parts(prepare(StepProblem(graph([1, 1], []), cluster(2)))) == []


def test_ticks_round_down() -> None:
    """No time is longer in ticks than in seconds, and what cannot run still cannot."""
    p = prepare(random_problem(3))
    ticks, scale = in_ticks(p, ceiling_of(p))
    finite = np.isfinite(p.time)
    assert (ticks.time[finite] <= p.time[finite] * scale).all()
    assert (np.isinf(ticks.time) == ~finite).all()
    assert (ticks.delay <= p.delay * scale).all()
    assert (ticks.delay == np.floor(ticks.delay)).all()


def test_whole_seconds_are_ticks() -> None:
    """Where all times are whole, a tick is a second, and machines of a shop are no-overlaps alone."""
    problem = parse_jobshop("3 2\n0 3 1 2\n1 2 0 4\n0 1 1 1\n")
    assert problem.is_shop()
    p = prepare(problem)
    ticks, scale = in_ticks(p, 13.0)
    assert scale == 1 and (ticks.time == p.time).all()
    model = StepFormulation(p, 13.0, None)
    text = str(model.base.model)
    assert text.count("no_overlap {") == 2 and "cumulative" not in text
    half = prepare(parse_jobshop("1 2\n0 3 1 2.5\n"))
    assert in_ticks(half, 5.5)[1] > 1000


@pytest.mark.parametrize("workers", [1, 2])
def test_a_shop_is_searched_without_linear_programmes(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """Of a shop the first thread has no linear programme, of other steps it has CP-SAT's own options."""
    found: list[tuple[int, list[str]]] = []
    monkeypatch.setattr(
        cpsat,
        "minimise",
        lambda run, solver, *_: found.append(
            (solver.parameters.linearization_level, [*solver.parameters.extra_subsolvers])
        ),
    )
    other = generate("layered", ops=20, layers=4, devices=3, objective="step")
    for problem in (parse_jobshop("2 2\n0 3 1 2\n1 2 0 4\n"), other):
        run = Run(problem, time_limit=60, workers=workers)
        TOOLS.methods["cpsat"].run(run, TOOLS.prepare(run))
    assert found == [(0, ["no_lp"]), (1, [])]
