"""A solver's word is a claim; a certificate, or a second witness that shares nothing with the first, makes a proof."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan import Cluster, DeviceType, PartitionPlan, solve
from gangplan.hybrid import witness
from gangplan.hybrid.bench import makers
from gangplan.hybrid.witness import prove
from gangplan.instances import LatencyProblem, OpGraph
from gangplan.instances.generators import generate
from gangplan.instances.verify import verify
from gangplan.solvers import Run
from gangplan.solvers.method import suite

SEEDS = {"architecture": 70_000, "fat_tree": 70_001, "random": 70_003}


def wrong_infeasible() -> LatencyProblem:
    """Return the problem of which CP-SAT says without probing that it has no plan; there is one of 33751.5 s."""
    none, inf = np.zeros(4), np.inf
    time = [[385.58064975023217, 767.5488391406711, 768.5458387046939, inf],
            [0.137378116475649, 1.4854558014101502, 2.668945234508061, 65.89101557775925],
            [71.35454781201, 0.0010886373993859077, inf, inf]]  # fmt: skip
    sent = [336.85619506749384, 1.7298021389634746, 18.951068955852463, 3.221770866238123]
    graph = OpGraph(
        tuple("abcd"), ("t0", "t1", "t2"), time, [0.1, 0.2, 0, 0], none, none, [3, 3, 3, 0], [0, 2, 1, 2], sent
    )
    kinds = [DeviceType("t0", memory=1e-9, host=True), DeviceType("t1", memory=0.2, host=True),
             DeviceType("t2", memory=0.2999997)]  # fmt: skip
    return LatencyProblem(graph, Cluster.flat(*((kind, 1) for kind in kinds), bandwidth=0.01))


def claimed(by: str) -> Run:
    """Return a run with a poor plan that somebody claims to be the optimum: all ops on one of two devices."""
    problem = generate("layered", ops=6, layers=3, training=False, devices=2)
    run = Run(problem, time_limit=60)
    run.offer(PartitionPlan(problem.graph.names, [0] * 6, [0] * 6), "x")
    assert run.objective is not None
    run.raise_bound(run.objective, by)
    assert run.stop_reason == "claimed"
    return run


@pytest.mark.parametrize("method", ["auto", "cpsat"])
def test_presolve_loses_no_plan(method: str) -> None:
    """CP-SAT finds the plan that its presolve once lost, and by its name the answer stays its claim."""
    result = solve(wrong_infeasible(), time_limit=60, method=method, workers=1)
    assert result.status == "OPTIMAL" and result.objective == pytest.approx(33751.51161096454)
    if method == "cpsat":
        assert (result.stop_reason, result.standing) == ("claimed", "OPTIMAL (claimed by cpsat)")
    else:
        assert (result.stop_reason, result.standing) == ("proved", "OPTIMAL (proved by cpsat and plain_milp)")
        assert result.witnesses == ("cpsat", "plain_milp")


def test_certificate_first() -> None:
    """What a certificate settles in milliseconds is certified without being asked for."""
    result = solve(generate("layered", ops=12, layers=6, training=False, devices=3), time_limit=60, workers=1)
    assert (result.stop_reason, result.standing) == ("proved", "OPTIMAL (certified)")
    assert result.certificate is not None and result.certified <= result.objective


@pytest.mark.parametrize(
    ("family", "generator", "arguments"),
    [
        ("architecture", "graph", {"kind": "bert", "layers": 4, "devices": 4}),
        ("fat_tree", "random_graph", {"kind": "layered", "ops": 50, "tree": [2, 2, 2]}),
        ("random", "random_graph", {"kind": "pipeline", "ops": 50}),
    ],
)
def test_steps_of_a_suite_are_certified(family: str, generator: str, arguments: dict[str, Any]) -> None:
    """Layers one after the other, slow links of a fat tree and batches of a pipeline stay nobody's claim."""
    problem = getattr(makers, generator)("step", family, seed=SEEDS[family], **arguments)
    result = solve(problem, time_limit=60, workers=1)
    assert (result.stop_reason, result.standing) == ("proved", "OPTIMAL (certified)")


def test_a_wrong_optimum_is_refuted() -> None:
    """A second witness that finds a better plan has the last word, and the claimant is named."""
    run = claimed("cpsat")
    best = suite("throughput").optimum(run.problem)
    assert run.objective is not None and best is not None and run.objective > best * 1.01
    _, witnesses = prove(run)
    assert "cpsat" not in witnesses
    assert run.objective == pytest.approx(best) and verify(run.problem, run.plan).ok
    assert "cpsat" in run.left_out and run.bound_by != "cpsat"


def test_a_wrong_infeasible_is_refuted() -> None:
    """When all solvers of the portfolio say that there is no plan, `auto` has the plan of the textbook model."""
    made = suite("latency").methods
    lie = replace(made["cpsat"], function=lambda run, _: run.prove_infeasible("cpsat"), start=None)
    problem = wrong_infeasible()
    run = Run(problem, time_limit=60)
    lie.run(run, None)
    assert run.infeasible and run.stop_reason == "claimed"
    prove(run)
    assert not run.infeasible and run.objective == pytest.approx(33751.51161096454)
    assert "there is no plan" in run.left_out["cpsat"]


def test_witnesses_share_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who confirms has not the solver of the claim; if both are in it, both textbook models must agree."""
    asked = list[str]()
    monkeypatch.setattr(witness, "_certificate", lambda *_: None)
    monkeypatch.setattr(witness, "_agrees", lambda run, name, seconds: asked.append(name) or True)
    for claimant, others in {
        "path": ["plain_cpsat"], "cpsat": ["plain_milp"], "milp": ["plain_cpsat"], "patterns": ["plain_cpsat", "plain_milp"],  # noqa: E501
    }.items():  # fmt: skip
        asked.clear()
        _, witnesses = prove(claimed(claimant))
        assert asked == others
        assert witnesses == (tuple(others) if claimant == "patterns" else (claimant, *others))


def test_the_limit_covers_the_proof() -> None:
    """A proof has a fifth of the limit at most, and nothing once the time is up."""
    run = claimed("cpsat")
    run.deadline = run.started
    assert prove(run) == (None, ())


def test_nothing_costs_less_than_nothing() -> None:
    """A plan that costs nothing is its own proof."""
    problem = wrong_infeasible()
    graph = replace(problem.graph, time=np.where(np.isfinite(problem.graph.time), 0.0, np.inf), edge_bytes=np.zeros(4))
    result = solve(replace(problem, graph=graph), time_limit=60, workers=1)
    assert (result.objective, result.stop_reason, result.standing) == (0.0, "proved", "OPTIMAL (proved by zero)")
