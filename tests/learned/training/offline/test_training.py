"""Training of offline policies: labels, both stages, and what is shipped of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

from gangplan.instances import verify
from gangplan.learned.graph.compiled import score
from gangplan.learned.offline.policy import OfflinePolicy
from gangplan.learned.offline.task import affinity, drawn
from gangplan.learned.training.network import Packed
from gangplan.learned.training.offline.lessons import label, problem_of, task_of
from gangplan.learned.training.offline.training import OfflineTraining, listwise, pairwise
from gangplan.learned.training.recipe import recipe, train_policy
from gangplan.solvers.method import suite
from gangplan.solvers.run import Run

pytestmark = pytest.mark.usefixtures("one_thread")
CONFIG = """
policy = "offline-{}"
width = 8
rounds = 2
ops = {}
larger = {}
draws = 2
lessons = 6
validation = 4
label_seconds = 1.0
cache = {!r}
imitation_updates = 2
minibatch = 4
rl_updates = 2
validate_every = 1
"""


@pytest.mark.parametrize(("objective", "size"), [("throughput", 24), ("placement", 8)])
def test_two_updates(objective: str, size: int, tmp_path: Path) -> None:
    """Two updates of each stage make weights, whose card names no folder; they are never worse than the rule."""
    config = tmp_path / "tiny.toml"
    config.write_text(CONFIG.format(objective, size, 0 if size == 24 else 2, str(tmp_path / "labels")))
    done = train_policy(config, tmp_path / "run")
    assert [*done.reports] == ["imitation", "rl"] and done.weights is not None
    assert str(tmp_path) not in done.weights.with_suffix(".json").read_text()
    figures = [*done.reports.values()][-1].validation
    assert figures["many"] <= figures["one"] and figures["rule"] >= 0
    policy = OfflinePolicy.load(task_of(objective), done.weights)
    rows = recipe(f"offline-{objective}").evaluate(policy, [0], ops=size, seconds=0.2)
    assert {row["policy"] for row in rows} == {"learned", "best of 16", "rule"}
    assert all(row["above_best"] >= 0 for row in rows)


@pytest.mark.parametrize(("objective", "size"), [("throughput", 60), ("placement", 10)])
def test_labels(objective: str, size: int) -> None:
    """The plan of a label has its value, no proof is above that, and most are proved optima."""
    proved = 0
    for index in range(8):
        known, problem = label(objective, "train", index, size, 0.3), problem_of(objective, "train", index, size)
        assert verify(problem, known.plan).objective == known.value >= known.bound * (1 - 1e-9)
        proved += known.proved
    assert proved > 2


def test_a_pipeline_is_learned_from_its_optimum() -> None:
    """Scores in the order of a lesson's stages are decoded to an optimum, which may be PipeDream's plan."""
    own = 0
    for index in range(12):
        known, problem = label("throughput", "train", index, 60, 0.5), problem_of("throughput", "train", index, 60)
        decoder = task_of("throughput").decoder(suite("throughput").prepare(Run(problem, time_limit=60)))
        if decoder is None or known.plan is None:
            continue
        lesson = decoder.lesson(known.plan)
        scores = np.tile((100 * lesson.rank - lesson.keys)[:, None], 4)
        plan = decoder.decode(scores)
        assert plan is not None and plan.value <= known.value * (1 + 1e-9)
        classic = decoder.decode(0)
        own += classic is not None and classic.value <= known.value * (1 + 1e-9)
    assert 0 < own < 12


def test_a_placement_is_learned_from_its_optimum() -> None:
    """Gangs in the order of a lesson, those together that share nodes in it, come nearer to optima than without."""
    gaps = []
    for index in range(1, 41, 2):
        known, problem = label("placement", "train", index, 8, 60.0), problem_of("placement", "train", index, 8)
        decoder = task_of("placement").decoder(suite("placement").prepare(Run(problem, time_limit=60)))
        if not known.proved or decoder is None:
            continue
        lesson = decoder.lesson(known.plan)
        value, vector = np.linalg.eigh(2 * lesson.together - 1)
        largest = np.argsort(-abs(value))[:4]
        pairs = vector[:, largest]
        scores = np.hstack([(100 * lesson.rank - lesson.keys)[:, None], pairs * value[largest], pairs])
        found = [decoder.decode(x) for x in (0, scores)]
        gaps.append([x.value / known.value - 1 for x in found if x is not None])
    classic, learned = np.mean(gaps, axis=0)
    assert len(gaps) > 15 and 0 <= learned < 0.6 * classic, (classic, learned)


SCHOOL = {"width": 16, "rounds": 2, "validation": 2, "label_seconds": 0.5, "minibatch": 16}
"""Settings of a training of seconds."""


def trained(training: OfflineTraining, stage: str, updates: int) -> Any:
    """Return the network after some updates of a stage."""
    torch.manual_seed(0)
    learner = getattr(training, stage)(training.network())
    for step in range(1, updates + 1):
        learner.update(step)
    return learner.networks["policy"]


def unlikely(training: OfflineTraining, network: Any, known: list[Any]) -> float:
    """Return how unlikely optima are by a network's order that is nearest to each, and its pairs, in the mean."""
    weights, found = network.compiled(), list[float]()
    for x in known:
        scores = torch.from_numpy(score(x.graph, weights)).double()
        rank, keys, *together = (torch.from_numpy(y) for y in x.lesson if y is not None)
        found.append(min(float(listwise(keys + y, rank)) for y in scores.T[: training.orders]))
        found[-1] += sum(float(pairwise(affinity(scores[:, training.orders :]), y)) for y in together)
    return float(np.mean(found))


def shuffled(lesson: Any, rng: np.random.Generator) -> Any:
    """Return a lesson that gives each item what another one's optimum is."""
    other, pairs = rng.permutation(len(lesson.rank)), lesson.together
    return lesson._replace(rank=lesson.rank[other], together=None if pairs is None else pairs[np.ix_(other, other)])


@pytest.mark.parametrize(
    ("objective", "ops", "lessons", "updates"), [("throughput", 40, 80, 120), ("placement", 6, 70, 80)]
)
def test_imitation_learns_from_its_labels(objective: str, ops: int, lessons: int, updates: int) -> None:
    """Optima that were not learned from are likelier by what their likes taught than by labels that are shuffled."""
    settings = recipe(f"offline-{objective}").config(**SCHOOL, ops=ops, lessons=lessons)
    training, rng = OfflineTraining(objective, settings, 0), np.random.default_rng(0)
    known = [x for x in training.known if x.lesson is not None]
    training.known, kept = known[:-16], known[-16:]
    true = unlikely(training, trained(training, "imitation", updates), kept)
    training.known = [x._replace(lesson=shuffled(x.lesson, rng)) for x in known[:-16]]
    false = unlikely(training, trained(training, "imitation", updates), kept)
    untrained = unlikely(training, training.network(), kept)
    assert true < 0.9 * untrained and true < 0.8 * false, (true, untrained, false)


@pytest.mark.parametrize(("objective", "ops"), [("throughput", 30), ("placement", 6)])
def test_rl_learns_from_its_rewards(objective: str, ops: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of scores with noise are better after some updates, more so than if rewards go to other scores."""
    for name, value in (("_FIRST", 0.5), ("TIMES", 2)):
        monkeypatch.setattr(f"gangplan.learned.training.offline.training.{name}", value)
    more = {"ops": ops, "lessons": 1, "larger": 24, "rl_rate": 0.01, "draws": 8, "label_seconds": 0.1}
    settings = recipe(f"offline-{objective}").config(**SCHOOL | more)
    training = OfflineTraining(objective, settings, 0)

    def mean(network: Any) -> float:
        weights = network.compiled()
        made = [values(x, drawn(score(x.graph, weights), settings.noise, 1)).mean() for x in training.more]
        return float(np.mean(made))

    values, rng = training.values, np.random.default_rng(0)
    torch.manual_seed(0)
    before, true = mean(training.network()), mean(trained(training, "rl", 40))
    monkeypatch.setattr(training, "values", lambda *given: rng.permutation(values(*given)))
    false = mean(trained(training, "rl", 40))
    assert true < min(before, false) - 0.002, (before, true, false)


def test_compiled_scores_are_those_of_pyg() -> None:
    """The compiled network has the scores of the one in PyTorch Geometric on graphs of ops."""
    training = OfflineTraining("throughput", recipe("offline-throughput").config(**SCHOOL, ops=40, lessons=6), 0)
    torch.manual_seed(1)
    network = training.network()
    torch.nn.init.normal_(network.last.weight)
    batch: HeteroData = Packed(training.schema, [x.graph for x in training.known]).batch(np.arange(3))
    expected = network(batch).detach().numpy()
    mine = np.concatenate([score(x.graph, network.compiled()) for x in training.known[:3]])
    np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-4)
