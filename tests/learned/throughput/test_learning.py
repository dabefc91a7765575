"""Encoding, losses, training and weights of the throughput policy."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError, verify
from gangplan.instances.generators.families import make, seed_of
from gangplan.learned.gnn import collate
from gangplan.learned.gnn.onnx import OnnxNetwork, export
from gangplan.learned.policy.weights import find
from gangplan.learned.throughput import method, recipe
from gangplan.learned.throughput.decode import decoder
from gangplan.learned.throughput.drafts import best_of, greedy, rows
from gangplan.learned.throughput.encode import encode
from gangplan.learned.throughput.examples import Example, drawn, taught
from gangplan.learned.throughput.losses import plan_loss
from gangplan.learned.throughput.network import Scorer
from gangplan.learned.throughput.own_plans import OwnPlans, best_of_heads
from gangplan.learned.throughput.policy import ThroughputPolicy
from gangplan.learned.throughput.settings import Settings
from gangplan.learned.throughput.validation import validation
from gangplan.solvers import Run
from gangplan.solvers.method import suite

torch.set_num_threads(1)
SMALL = Settings(width=8, rounds=1, heads=2, pairs=40, rl_minibatch=2, samples=4, rl_updates=4)


def _examples(count: int = 3) -> list[Example]:
    found = []
    for i, one in enumerate(drawn(("layered",), (30,), count, "validation")):
        noise = np.random.default_rng(i).standard_normal((12, one.decoder.q.n_groups))
        found.append(taught(one, [x for row in noise if (x := one.decoder.decode(row)) is not None], SMALL))
    return found


def _network(like: Example, rounds: int = 1) -> Scorer:
    torch.manual_seed(0)
    return Scorer(like.encoding, 8, rounds, 2)


def test_encoding_is_finite_and_has_the_same_columns_for_all_problems() -> None:
    """One op on one device, no transfers, hosts and several types: all have the same columns, and no number is odd."""
    wanted = None
    tools = suite("throughput")
    for seed in range(25):
        made = decoder(tools.random_problem(seed, tools.variants[seed % 3]))
        if made is None:
            continue
        found = encode(made)
        assert all(np.isfinite(x).all() for x in (*found.nodes.values(), *found.weights.values()))
        wanted = wanted or (found.columns, found.weight_columns)
        assert (found.columns, found.weight_columns) == wanted


def test_encoding_has_no_units() -> None:
    """Seconds and bytes in other units make no difference."""
    problem: Any = make("throughput", "series_parallel", seed_of("validation", 3), 40)
    graph = problem.graph
    graph = replace(graph, time=8 * graph.time, edge_bytes=8 * graph.edge_bytes, activation_bytes=8 * graph.activation_bytes)  # fmt: skip  # noqa: E501
    both = [decoder(x) for x in (problem, replace(problem, graph=graph))]
    assert both[0] is not None and both[1] is not None
    one, other = encode(both[0]), encode(both[1])
    for kind, x in one.nodes.items():
        assert np.allclose(x, other.nodes[kind], atol=1e-3), kind


def test_imitation_brings_the_order_to_the_plan() -> None:
    """The loss falls, and the plan decoded from the heads after training is as good as those imitated."""
    examples = _examples(1)
    network, rng = _network(examples[0]), np.random.default_rng(0)
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    batch, losses = collate([examples[0].encoding]), []
    for _ in range(60):
        loss = plan_loss(network(batch), batch.first["groups"], examples, rng, pairs=200, steep=12.0, regret=0.02)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert np.mean(losses[-5:]) < 0.7 * losses[0]


def test_one_head_learns_each_of_two_plans() -> None:
    """Two plans that contradict each other cost less with two heads than with one: none is averaged."""
    one = _examples(1)[0]
    n = one.decoder.q.n_groups
    stages = np.stack([(np.arange(n) >= n // 2).astype(int), (np.arange(n) < n // 2).astype(int)])
    known = replace(one, stages=stages, regrets=np.zeros(2))
    scores = torch.as_tensor(np.stack([stages[0] * 3.0, stages[1] * 3.0], axis=1))
    first, options = torch.tensor([0, n]), {"pairs": 300, "steep": 12.0, "regret": 0.02}
    both = plan_loss(scores, first, [known], np.random.default_rng(0), **options)  # type: ignore[arg-type]
    alone = plan_loss(scores[:, :1], first, [known], np.random.default_rng(0), **options)  # type: ignore[arg-type]
    assert float(both) < 0.1 < float(alone)


def test_rows_are_zeros_heads_and_noise() -> None:
    """The first row is PipeDream's order, the next the heads; there are as many as asked for, the same by seed."""
    heads = np.arange(6.0).reshape(3, 2)
    assert rows(heads).tolist() == [[0, 0, 0], [0, 2, 4], [1, 3, 5]]
    assert rows(heads, 16, 1).shape == (16, 3)
    assert (rows(heads, 16, 1) == rows(heads, 16, 1)).all() and (rows(heads, 16, 1) != rows(heads, 16, 2)).any()


def test_own_plans_go_on_from_a_checkpoint_exactly() -> None:
    """A learner that was saved and loaded makes the same update as one that was not."""

    def learner() -> OwnPlans:
        examples = list(drawn(("layered",), (30,), 3, "validation"))
        network = _network(examples[0])
        return OwnPlans(network, [examples], SMALL, validation(network, examples, SMALL.gain), 0)

    first, second = learner(), learner()
    first.update(1)
    tensors, plain = first.state()
    second.load({name: x.clone() for name, x in tensors.items()}, plain)
    assert first.update(2) == second.update(2)
    assert set(first.validate()) == {"score", "greedy", "sampled"}


def test_heads_share_the_work() -> None:
    """Where only scores near 1 or near -1 cost nothing, two heads that begin alike end one at each, by the gradient."""
    wanted = torch.tensor([[0.2, -0.2]], requires_grad=True)
    rng = np.random.default_rng(0)

    def cost(side: float, row: Any) -> float:
        return float(min(abs(row[0] - side), 1.0))

    optimizer = torch.optim.SGD([wanted], 0.05)
    for _ in range(200):
        # the example of one element asks for either side: only two heads that differ are good at both
        both = torch.cat([wanted, wanted])
        loss, paid = best_of_heads(
            both,
            torch.tensor([0, 1, 2]),
            [1.0, -1.0],
            cost,
            samples=16,
            noise=0.3,
            rng=rng,  # type: ignore[list-item]
        )
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert wanted[0, 0].item() == pytest.approx(1.0, abs=0.25)
    assert wanted[0, 1].item() == pytest.approx(-1.0, abs=0.25)
    assert paid < 0.4


def test_without_messages_only_groups_and_problem_are_encoded() -> None:
    """The features are the same with and without; the network of no rounds takes the short encoding."""
    one = next(iter(drawn(("layered",), (30,), 1, "validation")))
    short, full = encode(one.decoder, messages=False), encode(one.decoder)
    assert set(short.nodes) == {"groups", "problem"} and not short.edges
    assert all((short.nodes[kind] == full.nodes[kind]).all() for kind in short.nodes)
    network = Scorer(short, 8, 0, 3)
    assert network(collate([short])).shape == (one.decoder.q.n_groups, 3)


def test_onnx_says_the_same_on_any_size(tmp_path: Path) -> None:
    """The exported network agrees to 1e-5 with the network, on graphs smaller and larger than it was traced with."""
    one = _examples(1)[0]
    network = _network(one, rounds=2)
    file = export(network, network.graph.schema, tmp_path / "net.onnx")
    run = OnnxNetwork(file)
    for family, size in (("layered", 8), ("pipeline", 40), ("fork_join", 200)):
        made = decoder(make("throughput", family, seed_of("validation", 1), size))  # type: ignore[arg-type]
        assert made is not None
        encoding = encode(made)
        with torch.no_grad():
            wanted = network(collate([encoding])).numpy()
        assert np.abs(run(encoding)[0] - wanted).max() < 1e-5
    file.write_bytes(b"nonsense")
    with pytest.raises(InstanceError, match="onnx"):
        OnnxNetwork(file)
    with pytest.raises(InstanceError, match="no such file"):
        OnnxNetwork(tmp_path / "none.onnx")


def test_shipped_weights_plan_better_than_pipedream() -> None:
    """Over test seeds the shipped policy is nowhere worse than PipeDream's plan and better on average; plans verify."""
    policy = ThroughputPolicy.load(find("throughput"))
    ratios = []
    for i in range(6):
        problem: Any = make("throughput", ("layered", "series_parallel")[i % 2], seed_of("test", 500 + i), 80)
        made = decoder(problem)
        if made is None or made.base is None:
            continue
        plan = policy.plan(problem)
        again = policy.plan(problem)
        assert plan is not None and again is not None and (plan.stage == again.stage).all()
        load = verify(problem, plan).objective
        assert load is not None and load <= made.base.load * (1 + 1e-9)
        heads = policy.scores(made)
        sampled = best_of(made, heads, 16)
        own = greedy(made, heads)
        assert sampled is not None and own is not None and own.load == pytest.approx(load)
        ratios.append(load / made.base.load)
    assert np.mean(ratios) < 0.99


def test_method_offers_plans_and_stays_quiet_without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a method it offers verified plans within the time; without weights, or with broken ones, it leaves a note."""
    problem: Any = make("throughput", "layered", seed_of("test", 600), 60)
    tools = suite("throughput")
    run = Run(problem, time_limit=20)
    method.learned(run, tools.prepare(run))
    assert run.objective is not None and verify(problem, run.plan).ok
    none = Run(problem, time_limit=0.0)
    with suppress(TimeoutError):
        method.learned(none, tools.prepare(none))
    assert none.plan is None

    class Broken:
        def scores(self, made: Any) -> Any:
            raise InstanceError("scores", "are not all finite")

    for policy, word in (("weights: nowhere", "nowhere"), (Broken(), "not all finite")):
        monkeypatch.setattr(method, "_policy", lambda given=policy: given)
        run = Run(problem, time_limit=20)
        method.learned(run, tools.prepare(run))
        assert run.plan is None and any(word in note for note in run.notes)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("samples", 3),
        ("heads", 0),
        ("noise", 0.0),
        ("rl_sizes", (2,)),
        ("families", ()),
        ("rounds", -1),
        ("rl_sizes", ()),
    ],
)  # fmt: skip
def test_settings_are_checked(field: str, value: Any) -> None:
    """A setting that makes no sense is named."""
    with pytest.raises(InstanceError, match=field.removeprefix("rl_")):
        replace(Settings(), **{field: value})


def test_nothing_to_train_is_an_error() -> None:
    """Without imitation and without its own plans there is nothing to do."""
    with pytest.raises(InstanceError, match="nothing would be trained"):
        recipe.stages(Settings(imitation_updates=0, rl_updates=0), "cpu", 0)


def test_judged_on_test_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `gangplan learn eval` compares are instances of the test split, whatever their indices."""
    made = []

    def spy(problem: Any, family: str, seed: int, size: int) -> Any:
        made.append(seed)
        return make(problem, family, seed, size)

    class Nothing:
        """Has no plan."""

        def plan(self, problem: Any, samples: int) -> None:
            """Return none."""

    monkeypatch.setattr("gangplan.learned.throughput.evaluate.make", spy)
    found = recipe.evaluate(Nothing(), range(2), size=12)
    assert made == [seed_of("test", 0), seed_of("test", 1)]
    assert {row["seed"] for row in found} == {0, 1} and {row["method"] for row in found} > {"learned", "greedy"}
