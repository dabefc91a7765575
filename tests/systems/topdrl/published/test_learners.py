"""Training: imitation makes policies better, and what was saved goes on to the same curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.learned.policy.recipe import recipe, train_policy
from gangplan.learned.training.ppo import Ppo
from gangplan.learned.training.trainer import start
from gangplan.systems.topdrl.published.learners import Training, kind
from gangplan.systems.topdrl.published.policy import TopdrlPolicy
from gangplan.systems.topdrl.published.recipe import Settings

pytestmark = pytest.mark.usefixtures("one_thread")
TINY: dict[str, Any] = {
    "channels": 4, "width": 32, "lanes": 8, "steps": 16, "warm": 1, "validation_seeds": 4, "slots": 8,
}  # fmt: skip


def learner(settings: Settings) -> Ppo:
    """Return what trains first weights by PPO."""
    training = Training(settings, 0)
    return training.rl(start(training.network, 0, None))


def test_imitation_makes_it_better() -> None:
    """After a few updates of imitation jobs are done sooner than with first weights."""
    settings = Settings(imitation_updates=60, labels=2000, minibatch=64, imitation_rate=3e-3, **TINY)
    training = Training(settings, 0)
    found = training.imitation(start(training.network, 0, None))
    before = found.validate()["score"]
    for step in range(1, 61):
        found.update(step)
    assert found.validate()["score"] < before - 1.0


def test_the_same_curve() -> None:
    """What was saved after two updates goes on as if it had not been, of jobs picked and of GPUs."""
    for own in ({}, {"decides": "gpus", "slots": 1}):
        settings = Settings(**TINY | own)
        first, second = learner(settings), learner(settings)
        for step in (1, 2):
            first.update(step)
        tensors, plain = first.state()
        second.load({name: x.clone() for name, x in tensors.items()}, plain)
        assert [first.update(step) for step in (3, 4)] == [second.update(step) for step in (3, 4)]
        assert kind(settings) is type(first.episodes)


def test_recipe(tmp_path: Path) -> None:
    """A configuration trains to weights that load, are judged beside the published rules, and can be resumed."""
    text = 'policy = "topdrl"\nimitation_updates = 2\nlabels = 64\nrl_updates = 2\nslots = 8\nchannels = 4\nlanes = 4\n'
    (tmp_path / "own.toml").write_text(f"{text}steps = 4\nvalidation_seeds = 2\n")
    done = train_policy(tmp_path / "own.toml", tmp_path / "run", resume=True)
    assert [x.name for x in done.reports] == ["imitation", "rl"] and done.weights is not None
    again = train_policy(tmp_path / "own.toml", tmp_path / "run", resume=True)
    assert again.reports[-1].report.best == done.reports[-1].report.best
    policy = recipe("topdrl").load(done.weights)
    assert isinstance(policy, TopdrlPolicy)
    rows = recipe("topdrl").evaluate(policy, [0])
    assert len({row["policy"] for row in rows}) == 7 and all(row["mean_jct"] > 5 for row in rows)
