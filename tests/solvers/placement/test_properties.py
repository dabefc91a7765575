"""What must hold on every batch: names mean nothing, room never hurts, fewer jobs cost less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import TreeTopology, verify
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.placement.problem import GOALS
from gangplan.solvers import Run
from gangplan.solvers.placement.bounds import bound, impossible
from gangplan.solvers.placement.build import placements
from gangplan.solvers.placement.enumeration import optimum, random_problem
from gangplan.solvers.placement.local_search import local_search
from gangplan.solvers.placement.methods import BATCH_POLICIES, METHODS
from gangplan.solvers.placement.prepare import PreparedBatch
from gangplan.solvers.placement.state import PlacementState

from ...seeds import examples

SEEDS = st.integers(0, 10**6)


def bound_of(problem: PlacementProblem) -> float:
    """Return the bound, infinite where it is easy to see that there is no plan."""
    batch = PreparedBatch(problem)
    return float("inf") if impossible(batch) is not None else bound(batch)[0]


def permuted(problem: PlacementProblem, order: np.ndarray) -> PlacementProblem:
    """Return the problem with its nodes in another order."""
    fleet = problem.fleet
    fields = {name: getattr(fleet, name)[order] for name in ("gpu_type", "gpus", "cpu", "memory", "link")}
    return replace(
        problem,
        fleet=replace(
            fleet,
            names=tuple(fleet.names[i] for i in order),
            topology=TreeTopology(fleet.topology.levels, fleet.topology.group[:, order]),
            labelled=fleet.labelled[:, order],
            usable=np.asarray(fleet.usable)[order],
            **fields,
        ),
    )


def grown(problem: PlacementProblem, like: int) -> PlacementProblem:
    """Return the problem with one more node, empty and usable, as node `like` is and in its rack."""
    fleet = problem.fleet
    order = np.array([*range(fleet.n_nodes), like])
    usable = np.append(np.asarray(fleet.usable), True)
    fields = {name: getattr(fleet, name)[order] for name in ("gpu_type", "gpus", "cpu", "memory", "link")}
    topology = TreeTopology(fleet.topology.levels, fleet.topology.group[:, order])
    return replace(
        problem,
        fleet=replace(
            fleet,
            names=(*fleet.names, "extra"),
            topology=topology,
            labelled=fleet.labelled[:, order],
            usable=usable,
            **fields,
        ),
    )


def without(problem: PlacementProblem, j: int) -> PlacementProblem:
    """Return the problem without job j."""
    gone = problem.jobs[j].name
    jobs = [
        replace(job, apart=tuple(x for x in job.apart if x != gone)) for i, job in enumerate(problem.jobs) if i != j
    ]
    return replace(problem, jobs=tuple(jobs), running=tuple(run for run in problem.running if run.job != gone))


@settings(max_examples=examples(25), deadline=None)
@given(SEEDS)
def test_order_and_names_of_nodes(seed: int) -> None:
    """Optimum and bound stay when nodes change their order or their names."""
    problem = random_problem(seed)
    other = permuted(problem, np.random.default_rng(seed).permutation(problem.fleet.n_nodes))
    assert bound_of(other) == pytest.approx(bound_of(problem), rel=1e-12)
    before, after = optimum(problem), optimum(other)
    assert (after is None) == (before is None)
    assert before is None or after == pytest.approx(before, rel=1e-12)
    names = {name: f"renamed {name}" for name in problem.fleet.names}
    renamed = replace(
        problem,
        fleet=replace(problem.fleet, names=tuple(names.values())),
        running=tuple(replace(run, nodes=tuple(names[n] for n in run.nodes)) for run in problem.running),
    )
    assert bound_of(renamed) == bound_of(problem)
    assert optimum(renamed) == optimum(problem)


@settings(max_examples=examples(25), deadline=None)
@given(SEEDS)
def test_an_empty_node_never_hurts(seed: int) -> None:
    """With one more node like another neither the optimum nor the bound rises, and no plan is lost."""
    problem = random_problem(seed, nodes=2)
    usable = np.flatnonzero(np.asarray(problem.fleet.usable))
    if not len(usable) or problem.goal == "fragmentation":  # GPUs that some tasks cannot use are fragments
        return
    larger = grown(problem, int(usable[0]))
    before, after = optimum(problem), optimum(larger)
    assert bound_of(larger) <= bound_of(problem) * (1 + 1e-12)
    assert before is None or (after is not None and after <= before * (1 + 1e-12))


@settings(max_examples=examples(25), deadline=None)
@given(SEEDS)
def test_removing_a_job_never_hurts(seed: int) -> None:
    """Without a job neither the optimum nor the bound rises."""
    problem = random_problem(seed)
    if len(problem.jobs) < 2 or problem.goal == "fragmentation":  # it may have filled what others cannot use
        return
    fewer = without(problem, seed % len(problem.jobs))
    before, after = optimum(problem), optimum(fewer)
    assert bound_of(fewer) <= bound_of(problem) * (1 + 1e-12)
    assert before is None or (after is not None and after <= before * (1 + 1e-12))


@pytest.mark.parametrize("seed", range(5))
def test_generated_batches(seed: int) -> None:
    """On a crowded generated batch too the bound does not rise with an empty node or without a job."""
    problem = gangs(32, racks=2, nodes=6, load=0.9, seed=seed)
    value = bound_of(problem)
    assert bound_of(grown(problem, 0)) <= value * (1 + 1e-12)
    for j in range(32):
        assert bound_of(without(problem, j)) <= value * (1 + 1e-12), j


@settings(max_examples=examples(50), deadline=None)
@given(SEEDS)
def test_costs_are_those_of_the_verifier(seed: int) -> None:
    """After any number of gangs placed and taken off, the sum of costs is the goal that the verifier finds."""
    problem = (
        random_problem(seed, jobs=5, nodes=4)
        if seed % 2
        else gangs(8, nodes=2, load=0.7, seed=seed, shares=0.8, goal=GOALS[seed // 2 % 4])
    )
    batch = PreparedBatch(problem)
    if impossible(batch) is not None or batch.pinned:
        return
    rng = np.random.default_rng(seed)
    state, table = PlacementState(batch), list(BATCH_POLICIES.values())
    for _ in range(30):
        j = int(rng.integers(len(batch.jobs)))
        if state.rows[j]:
            state.remove(j)
            state.settle()
        places = list(placements(state, j, [table[int(rng.integers(len(table)))]]))
        if places:
            state.add(j, places[int(rng.integers(len(places)))])
        total = state.settle()
        if state.complete():
            verdict = verify(problem, state.plan())
            assert verdict.violations == ()
            assert verdict.objective == pytest.approx(total, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_local_search_is_no_worse_than_policies(seed: int) -> None:
    """What local search starts from is the best of four policies, and it ends no worse."""
    problem = gangs(16, nodes=4, load=0.9, seed=seed)
    found: dict[str, float] = {}
    plan: PlacementPlan | None = None
    for name in ("topology", "best_fit", "least_interference", "nearest_by_size", "local_search"):
        run, batch = Run(problem, time_limit=60.0), PreparedBatch(problem)
        if name == "local_search":
            local_search(run, batch, 2000)
        else:
            METHODS[name].run(run, batch)
        assert run.objective is not None
        found[name], plan = run.objective, run.plan
    assert plan is not None and verify(problem, plan).ok
    assert found["local_search"] == min(found.values())
