"""Training: imitation makes policies better, and what was saved goes on to the same curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.learned.training.ppo import Ppo
from gangplan.learned.training.recipe import recipe, train_policy
from gangplan.learned.training.trainer import start
from gangplan.systems.topdrl.published.learners import Picking, Placing, TopdrlTraining, kind, labelled, least_work
from gangplan.systems.topdrl.published.policy import TopdrlPolicy
from gangplan.systems.topdrl.published.recipe import TopdrlSettings
from gangplan.systems.topdrl.rules import rule
from gangplan.systems.topdrl.simulate import simulate

pytestmark = pytest.mark.usefixtures("one_thread")
TINY: dict[str, Any] = {
    "channels": 4, "width": 32, "lanes": 8, "steps": 16, "warm": 1, "validation_seeds": 4, "slots": 8,
}  # fmt: skip


def learner(settings: TopdrlSettings) -> Ppo:
    """Return what trains first weights by PPO."""
    training = TopdrlTraining(settings, 0)
    return training.rl(start(training.network, 0, None))


def test_imitation_makes_it_better() -> None:
    """After a few updates of imitation jobs are done sooner than with first weights."""
    settings = TopdrlSettings(imitation_updates=60, labels=2000, minibatch=64, imitation_rate=3e-3, **TINY)
    training = TopdrlTraining(settings, 0)
    found = training.imitation(start(training.network, 0, None))
    before = found.validate()["score"]
    for step in range(1, 61):
        found.update(step)
    assert found.validate()["score"] < before - 1.0


def test_the_same_curve() -> None:
    """What was saved after two updates goes on as if it had not been, of jobs picked and of GPUs."""
    for own in ({}, {"decides": "gpus", "slots": 1}):
        settings = TopdrlSettings(**TINY | own)
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
    assert [*done.reports] == ["imitation", "rl"] and done.weights is not None
    again = train_policy(tmp_path / "own.toml", tmp_path / "run", resume=True)
    assert [*again.reports.values()][-1].best == [*done.reports.values()][-1].best
    policy = recipe("topdrl").load(done.weights)
    assert isinstance(policy, TopdrlPolicy)
    rows = recipe("topdrl").evaluate(policy, [0])
    assert len({row["policy"] for row in rows}) == 7 and all(row["mean_jct"] > 5 for row in rows)


SETTINGS = TopdrlSettings(slots=150, lanes=2, channels=4, width=16)


def test_it_is_the_rule() -> None:
    """With all jobs in sight the teacher makes the schedules of least work first, where the first job blocks."""
    works = [SETTINGS.mix.draw(seed) for seed in range(2)]
    episodes = Picking(SETTINGS, 0, draw=works, count=2)
    while episodes.mask.any():
        regret = least_work(episodes)
        assert ((regret == 0).sum(axis=1)[episodes.mask.any(axis=1)] == 1).all()
        assert (np.isfinite(regret) == episodes.mask)[episodes.mask.any(axis=1)].all()
        episodes.take(regret.argmin(axis=1))
    alone = [simulate(x, SETTINGS.fleet, rule("least_work", "head")) for x in works]
    assert {x.seed: x.mean_jct for x in episodes.batch.finished} == {
        i: float((x.finish - x.workload.submit).mean()) for i, x in enumerate(alone)
    }


def test_labels() -> None:
    """There are as many labels as were asked for, each with an allowed action to take, and the same for a seed."""
    settings = TopdrlSettings(slots=6, lanes=4, labels=40)
    labels, again = labelled(settings, 3), labelled(settings, 3)
    assert labels.regret.shape == labels.mask.shape == (40, 7)
    assert ((labels.regret == 0) & labels.mask).any(dim=1).all()
    assert all((x == y).all() for x, y in zip(labels, again, strict=True))


PICKS = TopdrlSettings(slots=6, lanes=4)
PLACES = TopdrlSettings(decides="gpus", slots=1, lanes=4)


def play(episodes: Any, decisions: int) -> list[list[float]]:
    """Return what random actions earn."""
    found = []
    for _ in range(decisions):
        mask = episodes.look().mask
        found.append(episodes.take(np.where(mask, episodes.rng.random(mask.shape), -1.0).argmax(axis=1)).tolist())
    return found


def test_gpus_one_by_one() -> None:
    """The GPUs picked are marked and not picked again, the job shrinks by them, and it starts with its last one."""
    episodes = Placing(PLACES, 0)
    batch, cells = episodes.batch, PLACES.rows * PLACES.gpus
    jobs, state = batch.episodes[0]
    need = jobs.gpus[state.queue[0]]
    for done in range(need):
        seen, mask = episodes.see()[0], episodes.mask[0]
        picked = (seen[:cells].reshape(PLACES.rows, -1) < 0).all(axis=0)
        assert picked.sum() == done and not (picked & mask).any()
        assert seen[cells : cells + PLACES.widest].sum() == need - done
        assert state.start[0] == np.inf
        action = np.array([np.flatnonzero(row)[-1] for row in episodes.mask])  # from the last node on
        nodes = np.flatnonzero(mask)[-1] // 4
        episodes.take(action)
    assert np.isfinite(state.start[0])
    assert nodes == (32 - need) // 4 and state.free[nodes] == (32 - need) % 4


@pytest.mark.parametrize(("of", "settings"), [(Picking, PICKS), (Placing, PLACES)])
def test_go_on(of: Any, settings: TopdrlSettings) -> None:
    """Episodes that were saved and loaded, beyond the end of some, pay what they would have paid."""
    first, second = of(settings, 0), of(settings, 1)
    play(first, 150)
    kept = {name: x.copy() for name, x in first.state().items()}
    state = first.rng.bit_generator.state
    paid = play(first, 600)
    assert len(first.batch.finished) > 0
    second.load(kept)
    second.rng.bit_generator.state = state
    assert play(second, 600) == paid
