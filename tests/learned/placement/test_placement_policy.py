"""The placement policy keeps the contract, makes feasible plans only, and is what its heuristic is before training."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError, verify
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import PlacementProblem
from gangplan.learned import Case, check_policy
from gangplan.learned.placement.batches import prepared, sized, small
from gangplan.learned.placement.build import Builder, Decision
from gangplan.learned.placement.decode import Decoder, turns
from gangplan.learned.placement.head import Context
from gangplan.learned.placement.network import Example, Network, one
from gangplan.learned.placement.pairs import pairs
from gangplan.learned.placement.policy import PlacementPolicy
from gangplan.learned.placement.settings import Settings
from gangplan.solvers.placement.prepare import Batch, Rows


def renamed(problem: PlacementProblem, order: np.ndarray) -> PlacementProblem:  # type: ignore[type-arg]
    """Return the problem with node i as node order[i]."""
    fleet, back = problem.fleet, np.argsort(order)
    moved = replace(
        fleet,
        names=tuple(fleet.names[i] for i in back),
        gpu_type=fleet.gpu_type[back],
        gpus=fleet.gpus[back],
        cpu=fleet.cpu[back],
        memory=fleet.memory[back],
        link=fleet.link[back],
        topology=replace(fleet.topology, group=fleet.topology.group[:, back]),
        labelled=fleet.labelled[:, back],
        usable=np.asarray(fleet.usable)[back],
    )
    return replace(problem, fleet=moved)


def placed(problem: PlacementProblem, count: int) -> tuple[Builder, list[int]]:
    """Return a batch with so many of its gangs placed, and the others in their order."""
    batch = Batch(problem)
    builder = Builder(batch)
    order = sorted(builder.free(), key=lambda j: -turns(batch)[j])
    for j in order[:count]:
        found = builder.decide(j)
        assert found is not None
        builder.place(j, found.rows[0])
    return builder, order[count:]


def seen(policy: PlacementPolicy, problem: PlacementProblem, count: int) -> tuple[Decision, Context]:
    """Return a decision between several places, after `count` others."""
    builder, rest = placed(problem, count)
    for j in rest:
        decision = builder.decide(j)
        assert decision is not None
        if len(decision.rows) > 2:
            return decision, policy.context(problem)
        builder.place(j, decision.rows[0])
    raise AssertionError("no job has a choice")


def test_the_policy_keeps_the_contract(policy: PlacementPolicy) -> None:
    """Valid, deterministic, the same whatever nodes are called, the same once loaded, and at sizes never trained on."""
    cases = []
    for name, problem, larger in (
        ("small", gangs(jobs=10, racks=2, nodes=4, load=0.8, seed=1), False),
        ("large", gangs(jobs=60, racks=8, nodes=8, load=0.7, seed=2), True),
    ):
        m = problem.fleet.n_nodes
        order = np.random.default_rng(0).permutation(m)
        decision, context = seen(policy, problem, 5)
        other = Builder(Batch(renamed(problem, order)))
        for j, rows in enumerate(_before(problem, decision.job)):
            if rows:
                other.place(j, _moved(rows, order))
        judged = other.judged(decision.job, [_moved(rows, order) for rows in decision.rows])
        again = judged, policy.context(other.batch.problem)
        kept = np.ones(len(decision.rows), dtype=bool)
        cases.append(Case(name, (decision, context), kept, [(again, np.arange(len(kept)))], larger))
    check_policy(policy, cases)


def _before(problem: PlacementProblem, job: int) -> list[Rows]:
    """Return the rows of all jobs when it was the turn of `job`, as `seen` placed them."""
    builder, rest = placed(problem, 5)
    for j in rest:
        if j == job:
            return list(builder.state.rows)
        found = builder.decide(j)
        assert found is not None
        builder.place(j, found.rows[0])
    raise AssertionError("it has no turn")


def _moved(rows: Rows, order: np.ndarray) -> Rows:  # type: ignore[type-arg]
    return {int(order[node]): task for node, task in rows.items()}


@pytest.mark.parametrize("options", [{}, {"menus": 0.4, "shares": 0.5, "spread": 0.4, "apart": 0.4, "optional": 0.3}])
def test_plans_are_feasible(policy: PlacementPolicy, options: dict[str, float]) -> None:
    """The verifier takes every plan, greedy or sampled, at the cost that the decoder says."""
    for seed in range(3):
        problem = gangs(jobs=14, racks=2, nodes=5, load=0.8, seed=seed, running=0.3, **options)  # type: ignore[arg-type]
        decoder = Decoder(policy, Batch(problem))
        rng = np.random.default_rng(seed)
        for cost in (decoder.place(), decoder.place(rng), decoder.place(rng)):
            if cost is not None:
                last = cost
        verdict = verify(problem, decoder.builder.state.plan())
        assert verdict.objective == pytest.approx(last)


def test_samples_follow_the_seed(policy: PlacementPolicy) -> None:
    """The same seed draws the same placements one after the other, whatever was placed before."""
    batch = Batch(sized("train", 3, 16))
    first, second = Decoder(policy, batch), Decoder(policy, batch)
    second.place()
    a, b = np.random.default_rng(7), np.random.default_rng(7)
    assert [first.place(a) for _ in range(4)] == [second.place(b) for _ in range(4)]


def test_an_untrained_network_takes_the_place_of_the_least_cost() -> None:
    """Before anything is learned the policy is the greedy heuristic."""
    policy = PlacementPolicy(Network(8, 1), Settings(width=8, rounds=1))
    for index in range(3):
        batch = prepared(small("train", index))
        assert batch is not None
        assert Decoder(policy, batch).place() == Decoder(None, batch).place()


def test_the_head_in_numpy_scores_as_the_network_does(policy: PlacementPolicy) -> None:
    """Scores of a decision are those of torch, to single precision."""
    problem = gangs(jobs=10, racks=2, nodes=4, load=0.8, seed=1)
    decision, context = seen(policy, problem, 4)
    place, node = pairs(decision)
    example = Example(0, decision.job, decision.x, place, node, decision.price)
    scores = policy.network(one(problem, False), [example])[0].detach().numpy()
    assert len(scores) > 2
    np.testing.assert_allclose(policy.scores(decision, context), scores, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("onnx", "onnxscript", "onnxruntime")), reason="gangplan[onnx] is absent"
)
def test_onnx_scores_alike(policy: PlacementPolicy, tmp_path: Path) -> None:
    """On batches of other sizes than it was traced with, scores differ by 1e-5 of their spread at most."""
    from gangplan.learned.placement.onnx import OnnxPlacementPolicy, export

    written = export(policy, tmp_path / "policy.onnx")
    assert [x.name for x in written] == ["policy.onnx", "policy.head.onnx"]
    found = OnnxPlacementPolicy(tmp_path / "policy.onnx")
    for problem in (gangs(jobs=10, racks=2, nodes=4, seed=1), gangs(jobs=50, racks=5, nodes=8, load=0.7, seed=2)):
        decision, context = seen(policy, problem, 5)
        scores, others = policy.scores(decision, context), found.scores(decision, found.context(problem))
        np.testing.assert_allclose(others, scores, rtol=0, atol=1e-5 * max(1.0, float(np.ptp(scores))))


def test_weights_of_another_width_are_refused(policy: PlacementPolicy, tmp_path: Path) -> None:
    """A file whose tensors are not those of its card says which."""
    PlacementPolicy(policy.network, Settings(width=24)).save(tmp_path / "odd")
    with pytest.raises(InstanceError, match="has shape"):
        PlacementPolicy.load(tmp_path / "odd")


@pytest.mark.parametrize("field", ["width", "noise", "rl_samples", "rl_nodes"])
def test_settings_that_make_no_sense_are_refused(field: str) -> None:
    """Each error names its field."""
    with pytest.raises(InstanceError, match=field):
        Settings(**{field: 0})
