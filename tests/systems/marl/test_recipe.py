"""From a configuration to weights, by the stages that it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.learned.training.recipe import recipe, train_policy
from gangplan.systems.marl.policy import MarlPolicy
from gangplan.systems.marl.recipe import RECIPE, MarlSettings

pytestmark = pytest.mark.usefixtures("one_thread")


def test_stages() -> None:
    """Each round of imitation is a stage, PPO is the last; none of no rounds, and no PPO of no updates."""
    assert [x.name for x in RECIPE.stages(MarlSettings(), 0)] == ["imitation-0", "imitation-1", "rl"]
    assert [x.name for x in RECIPE.stages(MarlSettings(rounds=0), 0)] == ["rl"]
    assert [x.name for x in RECIPE.stages(MarlSettings(rl_updates=0, rounds=1), 0)] == ["imitation-0"]


def test_recipe(tmp_path: Path) -> None:
    """A configuration trains to weights that load, are judged beside the rules, and can be resumed."""
    text = 'policy = "marl"\ncases = ["leaf-spine"]\nservers = 16\njobs = 10\nwidth = 8\nreward_model = "mean ratio"\n'
    text += "samples = 100\nrounds = 1\nimitation_updates = 2\nlabels = 3\nminibatch = 4\nrl_updates = 2\n"
    own = tmp_path / "own.toml"
    own.write_text(f"{text}lanes = 1\nwarm = 0\nvalidation_seeds = 1\nvalidate_every = 1\n")
    done = train_policy(own, tmp_path / "run", resume=True)
    assert [*done.reports] == ["imitation-0", "rl"] and done.weights is not None
    again = train_policy(own, tmp_path / "run", resume=True)
    assert [*again.reports.values()][-1].best == [*done.reports.values()][-1].best
    policy = recipe("marl").load(done.weights)
    assert isinstance(policy, MarlPolicy)
