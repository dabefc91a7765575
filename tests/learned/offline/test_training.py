"""Training of offline policies: labels, both stages, and what is shipped of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

from gangplan.instances import verify
from gangplan.learned.offline.lessons import NEAR, examples, good_together, label, problem_of, task_of
from gangplan.learned.offline.recipe import OfflinePolicy
from gangplan.learned.offline.training import Training, expected_best
from gangplan.learned.policy import recipe, train_policy

CONFIG = """
policy = "offline-{}"
width = 8
rounds = 2
ops = 24
lessons = 6
validation = 4
label_seconds = 0.05
cache = {!r}
rules = [0, 3, 17]
imitation_updates = 2
minibatch = 4
rl_updates = 2
validate_every = 1
"""


@pytest.mark.parametrize("objective", ["throughput", "step"])
def test_two_updates(objective: str, tmp_path: Path) -> None:
    """Two updates of each stage make weights that load without torch and are never worse than the rule."""
    config = tmp_path / "tiny.toml"
    config.write_text(CONFIG.format(objective, str(tmp_path / "labels")))
    done = train_policy(config, tmp_path / "run")
    assert [x.name for x in done.reports] == ["imitation", "rl"] and done.weights is not None
    figures = done.reports[-1].report.validation
    assert 0 <= figures["many"] <= min(figures["one"], figures["rule"])
    policy = OfflinePolicy.load(task_of(objective), done.weights)
    rows = recipe(f"offline-{objective}").evaluate(policy, [0], ops=24, seconds=0.2)
    assert {row["policy"] for row in rows} == {"learned", "best of 16", "rule"}
    assert all(row["above_best"] >= 0 for row in rows)


@pytest.mark.parametrize("objective", ["throughput", "step"])
def test_labels(objective: str) -> None:
    """Plans of a label are verified, near the best, and different ones even where equal devices are exchanged."""
    several = 0
    for index in range(8):
        known, problem = label(objective, "train", index, 60, 0.2), problem_of(objective, "train", index, 60)
        forms = set()
        for plan, value in zip(known.plans, known.values, strict=True):
            assert verify(problem, plan).objective == value <= NEAR * known.values[0]
            first = {d: i for i, d in enumerate(dict.fromkeys(plan.device.tolist()))}
            forms.add(tuple(first[d] for d in plan.device.tolist()))
        assert len(forms) == len(known.plans)
        several += len(forms) > 1
    assert several


@pytest.mark.parametrize("stage", ["imitation", "rl"])
def test_a_stage_learns(stage: str) -> None:
    """Some updates make rules likelier whose plans are shorter: the loss falls, and so does the objective."""
    training = _training("throughput")
    torch.manual_seed(0)
    learner = getattr(training, stage)(training.network())
    losses = [learner.update(i + 1)["loss"] for i in range(100)]
    assert np.mean(losses[-30:]) < 0.97 * losses[0]


def test_expected_best() -> None:
    """The least of some draws is in the mean what drawing says."""
    scores, values = torch.tensor([[0.0, 1.0, -0.5, 0.3]]), torch.tensor([[0.3, 0.1, 0.0, torch.inf]])
    drawn = torch.distributions.Categorical(logits=scores[0]).sample((200_000, 4))
    expected = values[0].clamp(max=0.5)[drawn].min(dim=1).values.mean()
    assert float(expected_best(scores, values, 0.5, (4,))) == pytest.approx(float(expected), rel=0.02)
    one = (scores.softmax(dim=1) * values.clamp(max=0.5)).sum()
    assert float(expected_best(scores, values, 0.5, (1,))) == pytest.approx(float(one))


def test_good_together() -> None:
    """Of rules that are chosen each is the one that adds most to those before; the first is the classic one."""
    values = np.array([[0.2, 0.0, 0.3, 0.1], [0.2, 0.4, 0.0, 0.1], [0.2, 0.4, 0.2, np.inf]])
    # alone 1 leaves .2 + .2, 2 leaves .2 + 0 + .2 and 3 leaves .1 + .1 + .2; then 1 takes .2 more, 3 only .1
    assert good_together(values, 3) == [0, 1, 2]
    assert good_together(values[1:], 2) == [0, 2]


def _training(objective: str) -> Training:
    config = recipe(f"offline-{objective}").config
    settings = config(
        width=8,
        rounds=2,
        ops=40,
        rules=(0, 3, 17, 40),
        lessons=16,
        validation=2,
        label_seconds=0.05,
        imitation_rate=0.02,
        rl_rate=0.02,
    )
    return Training(objective, settings, 0)


def test_compiled_scores_are_those_of_pyg() -> None:
    """The compiled network has the scores of the one in PyTorch Geometric on graphs of ops."""
    from gangplan.learned.graph.compiled import score

    training = _training("step")
    torch.manual_seed(1)
    network = training.network()
    torch.nn.init.normal_(network.last.weight)
    batch: HeteroData = training.packed.batch(np.arange(3))
    expected = network(batch).detach().numpy()
    known = examples("step", training.settings, "train", 8)[:3]
    mine = np.concatenate([score(x.graph, network.compiled()) for x in known])
    np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-4)
