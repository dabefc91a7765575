"""Training from a configuration to weights, and what the weights that come with the package are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from gangplan.instances import InstanceError
from gangplan.instances.typed import SETTINGS
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.online.settings import GnnSettings
from gangplan.learned.policy import read_card, shipped
from gangplan.learned.policy.settings import read_config
from gangplan.learned.training.online.learners import GnnTraining
from gangplan.learned.training.online.own import OWN
from gangplan.learned.training.online.recipe import RECIPE
from gangplan.learned.training.recipe import recipe, train_policy
from gangplan.simulator.gangs.mixes import VALIDATION, Mix
from gangplan.systems.topdrl.rules import TopdrlPatient
from gangplan.systems.topdrl.simulate import simulate
from gangplan.systems.topdrl.suites import suite

from ...conftest import short

SHIPPED = sorted(name for name, path in shipped().items() if read_card(path).policy == "gnn")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what a short training leaves."""
    folder = tmp_path_factory.mktemp("gnn")
    config = folder / "few.toml"
    of = "width = 8\nrounds = 2\nlabels = 150\nfutures = 2\nahead = 3\ntries = 3\nupdates = 20\nminibatch = 16\n"
    config.write_text(f'policy = "gnn"\nvalidate_every = 10\nvalidation_seeds = 1\n{of}')
    with pytest.MonkeyPatch.context() as patch, parallel_config(backend="sequential"):
        patch.setattr("gangplan.learned.training.online.learners.episode", short)
        return train_policy(config, folder / "run")


@pytest.mark.usefixtures("one_thread")
def test_training_from_a_configuration(trained: Any) -> None:
    """A short training writes weights that load and finish a workload, and a card that says how they were made."""
    assert trained.weights is not None and trained.card is not None
    assert 0.5 < trained.card.validation["score"] < 2
    assert (trained.card.policy, trained.card.settings["width"], trained.card.data) == ("gnn", 8, RECIPE.data)
    policy = recipe("gnn").load(trained.weights)
    assert isinstance(policy, GnnPolicy) and policy.settings.labels == 150
    assert np.isfinite(simulate(Mix(jobs=30).draw(5), suite("small").fleet, policy).finish).all()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("width = 0", "width: 0"),
        ("labels = 0", "labels: 0"),
        ("tries = 1", "tries: 1"),
        ("rate = -0.1", "rate: -0.1"),
        ("messages = 3", "messages: 3"),
        ("witdh = 3", "witdh"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, line: str, words: str) -> None:
    """Before anything is trained."""
    config = tmp_path / "few.toml"
    config.write_text(f'policy = "gnn"\n{line}\n')
    with pytest.raises(InstanceError, match=words):
        train_policy(config, tmp_path / "run")


def test_stages() -> None:
    """Imitation of exact plans, of rollouts, and RL, as they have updates; RL may be alone."""
    every = [
        {}, {"rl_updates": 2}, {"updates": 0, "rl_updates": 2}, {"exact": 0.4, "exact_updates": 5, "rl_updates": 2},
    ]  # fmt: skip
    names = [[stage.name for stage in RECIPE.stages(GnnSettings(**x), 0)] for x in every]
    assert names == [["rollouts"], ["rollouts", "rl"], ["rl"], ["exact", "rollouts", "rl"]]


def test_weights_come_with_the_package() -> None:
    """Those that `Scheduler(policy="gnn")` reads."""
    assert "gnn" in SHIPPED


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_are_ahead_of_the_rule(name: str, guarded: bool) -> None:
    """On validation workloads the mean JCT is below that of `TopdrlPatient`, and of no suite clearly above."""
    policy, ratios = GnnPolicy.load(shipped()[name], guarded=guarded), {}
    for of in ("small", "expensive", "loaded"):
        ground, means = suite(of), []
        for seed in range(VALIDATION, VALIDATION + 6):
            work, told = ground.draw(seed)
            runs = [simulate(work, ground.fleet, x, ground.proximity, expected=told) for x in (policy, TopdrlPatient())]
            means.append([float((x.finish - work.submit).mean()) for x in runs])
        mine, rule = np.mean(means, axis=0)
        ratios[of] = mine / rule
    assert np.mean([*ratios.values()]) < 0.99 and max(ratios.values()) < 1.01


def test_own_jobs_take_one_stage() -> None:
    """Whatever a configuration says, what ships is corrected by rollouts alone, which takes minutes on any cluster."""
    for name in ("gnn", "gnn-small"):
        settings = SETTINGS.read(GnnSettings, {**read_config(name)[1], **OWN, "trace": "t", "cluster": "1x1x1"})
        assert [x.name for x in RECIPE.stages(settings, 0)] == ["rollouts"]


def test_grounds_must_be_there() -> None:
    """A cluster smaller than all that are learned from, or chosen by, is an error that names the setting."""
    with pytest.raises(InstanceError, match="largest: 8 is below 40 GPUs"):
        GnnTraining(GnnSettings(largest=8), 0)
