"""Training: returns are corrected as by hand, what was saved goes on to the same curve, and a toy is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.learned.training.recipe import recipe, train_policy
from gangplan.learned.training.trainer import start
from gangplan.simulator.ground import evaluate, values
from gangplan.systems.harmony.episodes import environment, make_log, mixture, play
from gangplan.systems.harmony.learners import HarmonyTraining, Replaying, corrected
from gangplan.systems.harmony.policy import HarmonyPolicy, log_probabilities, policy_network
from gangplan.systems.harmony.recipe import HarmonySettings
from gangplan.systems.interference.cases import VALIDATION
from gangplan.systems.interference.ground import Interference

pytestmark = pytest.mark.usefixtures("one_thread")
TINY: dict[str, Any] = {
    "architecture": "feedforward", "width": 16, "lanes": 3, "jobs": 6, "validation_seeds": 1,
    "reward_model": "pressure", "samples": 200, "warm": 1, "labels": 300, "slots": 4,
}  # fmt: skip


def learner(training: HarmonyTraining) -> Replaying:
    """Return what trains first weights."""
    return training.rl(start(training.network, 0, None))


def test_corrected_by_hand() -> None:
    """Two tasks and the end of an interval, then an interval that ends the episode: V-trace with ratios 2 and 1/2."""
    value, reward = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 1.0, 5.0])
    discount, ratio = np.array([1.0, 1.0, 0.5, 0.0]), np.array([2.0, 0.5, 1.0, 1.0])
    target, advantage = corrected(value, reward, discount, ratio, 0.8)
    # last: 5. Third: 1 + 0.5 * (4 + 0.8 * (5 - 4)) = 3.4. Second: 2 + 0.5 * (3 - 2) + 0.5 * (3.4 - 3) = 2.7.
    # first, the ratio of 2 cut off at 1: 1 + (2 - 1) + (2.7 - 2) = 2.7
    assert target == pytest.approx([2.7, 2.7, 3.4, 5.0])
    # 2.7 - 1, 3.4 - 2, 1 + 0.5 * 5 - 3, 5 - 4
    assert advantage == pytest.approx([1.7, 1.4, 0.5, 1.0])


def test_on_policy_all_share_the_return() -> None:
    """By the policy itself, and with `lam` 1, the target of every task is the discounted reward of its interval on."""
    discount = np.array([1.0, 1.0, 0.9, 1.0, 0.9, 0.0])
    reward = np.array([0.0, 0.0, 2.0, 0.0, 3.0, 4.0])
    value = np.random.default_rng(0).normal(size=6)
    target, advantage = corrected(value, reward, discount, np.ones(6), 1.0)
    second = 3.0 + 0.9 * 4.0
    assert target == pytest.approx([2.0 + 0.9 * second] * 3 + [second] * 2 + [4.0])
    assert advantage == pytest.approx(target - value)


def test_exploration_is_accounted_for() -> None:
    """The probability that is remembered is that of the mixture with both rules, and rules alone reach what is rare."""
    found = mixture(np.array([0.7, 0.3, 0.0]), [1, 2], 0.2)
    assert found == pytest.approx([0.56, 0.24 + 0.1, 0.1])
    settings = HarmonySettings(**TINY | {"explore": 0.3})
    network = start(lambda: policy_network(settings), 0, None)
    with torch.no_grad():
        network.layers[-1].weight *= 100.0  # far from even
    seen = play([environment(settings, None, VALIDATION, 8)], settings, network, None, np.random.default_rng(0))
    assert seen is not None
    logs = log_probabilities(network, seen.rows, seen.mask).gather(1, seen.action[:, None])[:, 0]
    choice = seen.mask.sum(dim=1) > 1
    ratio = (logs - seen.behaviour).exp()
    assert (ratio[~choice] == 1).all() and ratio.max() < 1 / 0.7 + 0.05  # the most that the mixture allows
    assert (ratio[choice] < 0.5).any() and seen.mask.gather(1, seen.action[:, None]).all()
    assert (seen.discount == 0).sum() == 1 and ((seen.reward > 0) <= (seen.discount != 1)).all()
    assert float(seen.reward.sum()) == pytest.approx(8.0, rel=1e-4)  # eight jobs did all of their epochs


@pytest.mark.parametrize("own", [{}, {"reward_model": "off", "samples": 100}])
def test_the_same_curve(own: dict[str, Any]) -> None:
    """What was saved after two updates goes on as if it had not been, with what is replayed."""
    training = HarmonyTraining(HarmonySettings(**TINY | own), 0)
    first, second = learner(training), learner(training)
    for step in (1, 2):
        first.update(step)
    tensors, plain = first.state()
    second.load({name: x.clone() for name, x in tensors.items()}, plain)
    found = [first.update(step) for step in (3, 4)]
    assert found == [second.update(step) for step in (3, 4)]
    assert "replayed_entropy" in found[0]


def test_without_a_reward_model() -> None:
    """The true cluster pays in no more intervals than made the log; then the policy learns from what is kept alone."""
    settings = HarmonySettings(**TINY | {"reward_model": "off", "samples": 100, "replay": 50})
    found, shown = learner(HarmonyTraining(settings, 0)), [{"decisions": 0.0}]
    while "decisions" in shown[-1]:
        shown.append(found.update(len(shown)))
    paid = sum(int((seen.reward > 0).sum()) for seen in found._kept)
    assert 0 < paid <= len(make_log(settings, 0).now)
    assert "replayed_entropy" in shown[-1]


def test_it_learns() -> None:
    """On short cases the mean JCT falls by an eighth at least from that of first weights."""
    own = {
        "lanes": 8,
        "jobs": 8,
        "rl_updates": 30,
        "rl_rate": 3e-3,
        "critic_rate": 5e-3,
        "replays": 2,
        "gamma": 0.8,
        "explore": 0.2,
        "validation_seeds": 8,
    }
    settings = HarmonySettings(**TINY | own)
    found = learner(HarmonyTraining(settings, 0))
    before = found.validate()["score"]
    for step in range(1, 31):
        found.update(step)
    assert found.validate()["score"] < 0.875 * before


def test_imitation() -> None:
    """After imitation of a tuned rule the policy is ahead of the rule as published, in the true cluster."""
    settings = HarmonySettings(
        **TINY | {"form": "tuned", "labels": 3000, "imitation_rate": 5e-3, "jobs": 25, "width": 32}
    )
    training = HarmonyTraining(settings, 0)
    found = training.imitation(start(training.network, 0, None))
    for step in range(1, 201):
        found.update(step)
    assert found.validate()["score"] == training.validate(found.network)["score"]
    policies = {"learned": HarmonyPolicy(found.network, settings), "rule": HarmonySettings().rule("tetris")}
    makers = {n: lambda case, seed, x=x: x for n, x in policies.items()}
    runs = evaluate(Interference(jobs=40), makers, [VALIDATION])
    assert values(runs, "learned", "mean_jct")[0] < 0.8 * values(runs, "rule", "mean_jct")[0]


def test_recipe(tmp_path: Path) -> None:
    """A configuration trains to weights that load, place as before, are judged beside the rules, and can be resumed."""
    text = 'policy = "harmony"\nimitation_updates = 2\nlabels = 64\nrl_updates = 2\njobs = 5\nlanes = 2\nwidth = 16\n'
    own = tmp_path / "own.toml"
    own.write_text(f'{text}validation_seeds = 1\nreward_model = "mean ratio"\nsamples = 200\nform = "tuned"\n')
    done = train_policy(own, tmp_path / "run", resume=True)
    assert [*done.reports] == ["imitation", "rl"] and done.weights is not None
    again = train_policy(own, tmp_path / "run", resume=True)
    assert [*again.reports.values()][-1].best == [*done.reports.values()][-1].best
    policy = recipe("harmony").load(done.weights)
    assert isinstance(policy, HarmonyPolicy)
    policy.save(tmp_path / "copy")
    made = [
        evaluate(Interference(jobs=10), {"it": lambda case, seed, x=x: x}, [VALIDATION])[0].figures["mean_jct"]
        for x in (policy, HarmonyPolicy.load(tmp_path / "copy"))
    ]
    assert made[0] == made[1]
    assert len({row["policy"] for row in recipe("harmony").evaluate(policy, [0])}) == 12
