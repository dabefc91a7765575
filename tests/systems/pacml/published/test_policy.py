"""The published policy keeps the contract, sees what the paper says, and is found by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned import Case, check_policy
from gangplan.learned.policy import find, shipped
from gangplan.systems.pacml.arrivals import Fractions, arrivals
from gangplan.systems.pacml.ground import Pacml
from gangplan.systems.pacml.jobs import JobType
from gangplan.systems.pacml.learned.policies import make_policy
from gangplan.systems.pacml.learned.values import Scenario
from gangplan.systems.pacml.published.network import Policies
from gangplan.systems.pacml.published.observe import (
    ACTIONS,
    FEATURES,
    JOB,
    OpRows,
    PublishedObservation,
    job_rows,
    op_rows,
)
from gangplan.systems.pacml.published.policy import PublishedPolicy
from gangplan.systems.pacml.published.recipe import PublishedSettings
from gangplan.systems.pacml.simulate import Acceptance, RampState, simulate


def policy(distribution: str = "") -> PublishedPolicy:
    """Return a policy with random weights."""
    torch.manual_seed(3)
    return PublishedPolicy(Policies(PublishedSettings()), PublishedSettings(), distribution=distribution)


def case(kind: JobType, free: int, larger: bool) -> Case:
    """Return a decision about a job, and the same with its ops and edges in another order."""
    graph, rng = op_rows(kind.graph), np.random.default_rng(free)
    features = rng.random(FEATURES).astype(np.float32)
    mask = np.array([True, *(d <= free for d in (1, 2, 4, 6, 8, 16))])
    features[-ACTIONS:] = mask
    ops, edges = rng.permutation(len(graph.nodes)), rng.permutation(graph.ends.shape[1])
    moved = OpRows(graph.nodes[np.argsort(ops)], ops[graph.ends][:, edges], graph.edges[edges])
    other = PublishedObservation(moved, features, mask)
    return Case(
        f"{kind.name}, {free} free",
        PublishedObservation(graph, features, mask),
        mask,
        [(other, np.arange(ACTIONS))],
        larger,
    )


def test_contract(scenario: Scenario) -> None:
    """Names of ops, seeds, saving and a larger op graph: all as the contract says."""
    kinds = sorted(scenario.types, key=lambda x: x.graph.n_ops)
    cases = [case(x, free, x is kinds[-1]) for x in kinds for free in (0, 5, 32)]
    check_policy(policy(), cases)


def test_what_it_sees(scenario: Scenario) -> None:
    """Shares of the largest, the depth, what runs; degrees of more servers than are free are masked."""
    drawn, seen = arrivals(scenario.types, "B", 0, n=8), list[tuple[RampState, PublishedObservation]]()

    class Watched(PublishedPolicy):
        def choose(self, observation: PublishedObservation, seed: int | None = None) -> int:
            seen.append((states[-1], observation))
            return 5 if observation.mask[5] else 0

        def decide(self, state: RampState) -> Acceptance | None:
            states.append(state)
            return super().decide(state)

    states: list[RampState] = []
    made = policy()
    outcome = simulate(drawn, Watched(made.network, made.settings))
    assert len(seen) == 8 and outcome.admitted.any()
    for state, x in seen:
        free = int(state.free.sum())
        acceptable, beta, busy, running = x.features[len(JOB) : -ACTIONS]
        longest = max(kind.sequential for kind in scenario.types)
        assert acceptable == pytest.approx(state.limit / longest, rel=1e-6) and beta == pytest.approx(state.fraction)
        assert busy == pytest.approx(1 - free / 32)
        before = slice(0, state.index)
        there = outcome.admitted & (outcome.finish > state.now)
        assert running == pytest.approx(there[before].sum() / 32)
        assert x.mask.tolist() == [True, *(d <= free for d in (1, 2, 4, 6, 8, 16))]
    assert (job_rows(scenario.types).max(axis=0) == 1).all()


def test_op_graph_as_read(scenario: Scenario) -> None:
    """The largest of each kind is 1 and marked, an edge carries its source's memory, and depth grows along edges."""
    graph = scenario.types[0].graph
    rows = op_rows(graph)
    assert rows.nodes[:, [0, 2, 4]].max(axis=0).tolist() == [1, 1, 1] and rows.edges[:, 0].max() == 1
    assert (rows.nodes[:, 1] == (graph.time[0] == graph.time[0].max())).all()
    source, target = rows.ends
    assert (rows.nodes[source, 4] < rows.nodes[target, 4]).all()
    of = graph.memory[graph.source]
    np.testing.assert_allclose(rows.edges[:, 0], of / of.max(), rtol=1e-6)


def test_each_distribution_has_its_network(scenario: Scenario) -> None:
    """The network is that of the case's distribution; where none is named it stays the one before."""
    made, used = policy(), list[str]()
    for letter in "AC":
        simulate(arrivals(scenario.types, letter, 0, n=3), made)
        used.append(made.distribution)
    simulate(arrivals(scenario.types, Fractions(upper=0.9), 0, n=3), made)
    assert [*used, made.distribution] == ["A", "C", "C"]
    seen = case(scenario.types[0], 32, False).observation
    assert not np.allclose(policy("A").score(seen), policy("B").score(seen))


@pytest.mark.skipif("pacml-published" not in shipped(), reason="there are no weights")
def test_by_name(scenario: Scenario) -> None:
    """The command's ground plays it by name, in checked outcomes; plans do not go behind it."""
    ground = Pacml(scenario.types, "C", jobs=30)
    maker = ground.policy("pacml-published")
    drawn = ground.draw(0)
    assert 0 <= ground.play(maker(drawn, 0), drawn)["blocked"] < 1
    assert isinstance(make_policy(str(find("pacml-published")))(0), PublishedPolicy)
    with pytest.raises(InstanceError, match="is not pacml"):
        make_policy("pacml-published+plans")(0)


def test_saved_weights_of_another_size_are_refused(tmp_path: Path) -> None:
    """Tensors that are not those of the card's settings are named."""
    made = policy()
    PublishedPolicy(made.network, replace(made.settings, width=8)).save(tmp_path / "own.safetensors")
    with pytest.raises(InstanceError, match="has shape"):
        PublishedPolicy.load(tmp_path / "own.safetensors")
