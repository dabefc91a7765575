"""Choosing from the book: losses, the book itself, and the whole of a small training."""

import itertools
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError, verify
from gangplan.instances.generators.families import make
from gangplan.learned.gnn import schema_of
from gangplan.learned.gnn.network import Schema
from gangplan.learned.gnn.onnx import OnnxNetwork
from gangplan.learned.policy.run import train_policy
from gangplan.learned.step.book import pick
from gangplan.learned.step.choose import expected_best
from gangplan.learned.step.features import case_of
from gangplan.learned.step.method import learned
from gangplan.learned.step.policy import StepPolicy, network_of
from gangplan.learned.step.recipe import RECIPE
from gangplan.learned.step.schema import schema
from gangplan.learned.step.settings import Settings
from gangplan.solvers import Run
from gangplan.solvers.partition.step.model import prepare

TINY = """policy = "step"
book = 10
drawn = 40
book_cases = 4
book_size = 40
cases = 40
size = 100
imitation_updates = 4
rl_updates = 4
rl_cases = 2
rl_sizes = [40]
minibatch = 4
width = 8
rounds = 1
validate_every = 2
validation_cases = 40
"""


def test_expected_best_is_what_enumeration_says():
    """The expected best of two draws is the mean over all pairs, by their probabilities."""
    scores, regrets = torch.tensor([[0.3, -1.0, 2.0]]), torch.tensor([[0.2, 0.0, 0.5]])
    p = torch.softmax(scores, 1)[0].tolist()
    pairs = itertools.product(range(3), repeat=2)
    expected = sum(p[a] * p[b] * min(regrets[0, a], regrets[0, b]) for a, b in pairs)
    assert float(expected_best(scores, regrets, 2)) == pytest.approx(float(expected), rel=1e-5)
    assert float(expected_best(scores, regrets, 1)) == pytest.approx(float((torch.tensor(p) * regrets[0]).sum()))


def test_the_book_is_picked_for_the_best_of_it():
    """The first is best alone; the second is what adds most to it, not what is second best alone."""
    table = np.array([[1.0, 1.1, 3.0], [2.0, 2.1, 1.0]])
    assert pick(table, 2) == [0, 2]
    assert sorted(pick(table, 9)) == [0, 1, 2]


def test_schema_is_that_of_the_features():
    """A network is built without looking at an instance, so its schema must be that of any."""
    p = prepare(make("step", "fork_join", 0, 20))
    for messages in (True, False):
        assert schema_of(case_of(p, messages=messages).encoding) == Schema(*schema(messages))


def test_names_make_no_difference():
    """With ops in another order the scores are the same."""
    problem = make("step", "series_parallel", 5, 60)
    graph, order = problem.graph, np.random.default_rng(0).permutation(problem.graph.n_ops)
    at = np.argsort(order)
    other = replace(
        graph,
        names=[graph.names[i] for i in order],
        **{name: getattr(graph, name)[order] for name in ("memory", "parameter_bytes", "activation_bytes", "backward")},
        time=graph.time[:, order], colocation=graph.colocation[order], source=at[graph.source],
        target=at[graph.target], twin=np.where(graph.twin[order] >= 0, at[graph.twin[order]], -1),
    )  # fmt: skip
    torch.manual_seed(0)
    policy = StepPolicy(network_of(Settings(rounds=2)))
    one, two = (policy.scores(policy.case(prepare(x))) for x in (problem, replace(problem, graph=other)))
    assert np.allclose(one, two, atol=1e-3 * np.ptp(one))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """Return the weights of a training of four updates a stage."""
    folder = tmp_path_factory.mktemp("step")
    (folder / "tiny.toml").write_text(TINY)
    found = train_policy(folder / "tiny.toml", folder / "run")
    assert [x.name for x in found.reports] == ["imitation", "rl"]
    assert found.weights is not None
    return found.weights


def test_training_ends_in_weights_that_plan(trained):
    """Both stages run, and what they leave makes plans that the verifier takes, never longer than HEFT's."""
    policy = StepPolicy.load(trained)
    for family in ("layered", "pipeline"):
        problem = make("step", family, 1 << 30, 60)
        case = policy.case(prepare(problem))
        greedy, sampled = (verify(problem, policy.plan(problem, n)).objective for n in (1, 4))
        assert sampled <= greedy <= case.heft[0] * (1 + 1e-9)


def test_saved_and_loaded_it_is_the_same(trained, tmp_path):
    """Scores do not change by saving."""
    policy = StepPolicy.load(trained)
    case = policy.case(prepare(make("step", "layered", 7, 40)))
    policy.save(tmp_path / "again")
    other = StepPolicy.load(tmp_path / "again")
    assert np.array_equal(policy.scores(case), other.scores(case))
    assert np.array_equal(policy.settings_of(case), other.settings_of(case))


def test_onnx_says_the_same(trained, tmp_path):
    """ONNX Runtime gives the same scores to 1e-5 of their spread, and the book, on problems of several sizes."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    policy = StepPolicy.load(trained)
    (path,) = RECIPE.export(policy, tmp_path / "step.onnx")
    network = OnnxNetwork(path)
    for family, size in (("layered", 30), ("pipeline", 120)):
        case = policy.case(prepare(make("step", family, 3, size)))
        scores, book = network(case.encoding)
        expected = policy.scores(case)
        assert np.abs(scores[0] - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())
        assert np.array_equal(book, policy.network.book.numpy())


def test_weights_of_another_policy_are_refused(trained, tmp_path):
    """The card says whose the weights are."""
    for path in trained.parent.glob("step.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    card = json.loads((tmp_path / "step.json").read_text())
    (tmp_path / "step.json").write_text(json.dumps(card | {"policy": "pacml"}))
    with pytest.raises(InstanceError, match="is not step"):
        StepPolicy.load(tmp_path / "step.safetensors")


@pytest.mark.parametrize(
    ("change", "words"), [({"width": 0}, "width"), ({"book": 500}, "drawn"), ({"families": ()}, "families")]
)
def test_settings_are_checked(change, words):
    """A wrong setting is named."""
    with pytest.raises(InstanceError, match=words):
        Settings(**change)


def offered(problem, policy, monkeypatch) -> Run:
    """Return the run after the method, with this policy as the shipped one."""
    monkeypatch.setattr("gangplan.learned.step.method._loaded", cache(policy))
    run = Run(problem, time_limit=30)
    learned(run, prepare(problem))
    return run


def test_the_method_offers_plans(trained, monkeypatch):
    """A solve gets the policy's best plan of sixteen."""
    policy, problem = StepPolicy.load(trained), make("step", "pipeline", 11, 60)
    run = offered(problem, lambda: policy, monkeypatch)
    assert run.objective == verify(problem, policy.plan(problem, 16)).objective
    assert not run.notes


def test_the_method_returns_quietly_from_what_is_broken(trained, monkeypatch):
    """Missing weights and scores that are no numbers leave a note and no plan."""
    problem = make("step", "pipeline", 11, 60)

    def missing():
        raise InstanceError("weights", "are not there")

    assert "are not there" in offered(problem, missing, monkeypatch).notes[0]
    policy = StepPolicy.load(trained)
    torch.nn.init.constant_(policy.network.head[-1].bias, float("nan"))
    run = offered(problem, lambda: policy, monkeypatch)
    assert run.plan is None
    assert "not finite" in run.notes[0]
    late = Run(problem, time_limit=0.01)
    learned(late, prepare(problem))
    assert late.plan is None
