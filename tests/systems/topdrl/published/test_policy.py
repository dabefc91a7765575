"""The policy decides by its network: schedules are checked, alone as in a batch, and bad input is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.learned.policy import find
from gangplan.learned.training.trainer import start
from gangplan.simulator.gangs.mixes import SMALL, Mix
from gangplan.systems.topdrl.policies import PUBLISHED, make_policy
from gangplan.systems.topdrl.published.learners import kind
from gangplan.systems.topdrl.published.policy import ImageCritic, ImageNetwork, TopdrlPolicy
from gangplan.systems.topdrl.published.recipe import TopdrlSettings
from gangplan.systems.topdrl.simulate import simulate

FLEET = Fleet.regular(2, 4, 4)
MIX = Mix(jobs=40)
PICKS = TopdrlSettings(slots=6, channels=4, width=16, allocator="sized")
PLACES = TopdrlSettings(decides="gpus", slots=1, channels=4, width=16)


def untrained(settings: TopdrlSettings) -> TopdrlPolicy:
    """Return a policy with first weights, changed so that one that picks jobs looks at them and seldom waits."""
    network = start(lambda: ImageNetwork(settings), 0, None)
    with torch.no_grad():
        if settings.decides == "job":
            network.last.bias -= 1.0
            network.slot.weight *= 20.0
    return TopdrlPolicy(network, settings)


@pytest.mark.parametrize("settings", [PICKS, PLACES])
def test_alone_as_in_a_batch(settings: TopdrlSettings) -> None:
    """An untrained policy makes a schedule that passes the check, with the mean JCT that it has in a batch."""
    policy, works = untrained(settings), [MIX.draw(seed) for seed in range(2)]
    alone = [simulate(x, FLEET, policy) for x in works]
    episodes = kind(settings)(settings, 0, draw=works, count=2)
    while (mask := episodes.mask).any():
        episodes.take(np.where(mask, policy.scores(episodes.see()), -np.inf).argmax(axis=1))
    found = {x.seed: x.mean_jct for x in episodes.batch.finished}
    assert found == {i: pytest.approx((x.finish - x.workload.submit).mean()) for i, x in enumerate(alone)}


def test_saved_and_loaded(tmp_path: Path) -> None:
    """A policy that was saved and loaded makes the same schedule; another allocator and other images change it."""
    policy, work = untrained(PICKS), MIX.draw(3)
    policy.save(tmp_path / "some.safetensors")
    made = simulate(work, FLEET, policy).finish
    assert np.array_equal(simulate(work, FLEET, TopdrlPolicy.load(tmp_path / "some.safetensors")).finish, made)
    for other in ({"allocator": "closest"}, {"step": 9.0}):
        changed = TopdrlPolicy.load(tmp_path / "some.safetensors", **other)
        assert not np.array_equal(simulate(work, FLEET, changed).finish, made)


def test_what_it_never_does() -> None:
    """A network that prefers to wait is not asked where that would be for ever: jobs start one after the other."""
    policy = untrained(PICKS)
    with torch.no_grad():
        policy.network.score.weight[:], policy.network.last.bias[:] = 0.0, 100.0
    outcome = simulate(MIX.draw(0), FLEET, policy)
    order = np.argsort(outcome.start)
    assert (outcome.start[order][1:] == outcome.finish[order][:-1]).all()


def test_bad_input() -> None:
    """Another allocator, cluster or setting is an error that names it."""
    with pytest.raises(InstanceError, match="allocator: 'far' is not one of"):
        TopdrlPolicy(ImageNetwork(PICKS), PICKS, allocator="far")
    with pytest.raises(InstanceError, match="cluster: has 16 GPUs, and not the 32 of training"):
        simulate(MIX.draw(0), Fleet.regular(1, 4, 4), untrained(PICKS))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"cluster": (2, 4)}, "cluster: .2, 4. is not racks, nodes and GPUs"),
        ({"decides": "gpus"}, "slots: 20 are not 1"),
        ({"decides": "gpus", "slots": 1, "imitation_updates": 3}, "imitation_updates: is not 0"),
    ]
    for given, words in wrong:
        with pytest.raises(InstanceError, match=words):
            TopdrlSettings(**given)


def test_what_is_shipped() -> None:
    """On ten workloads of test seeds the policy that is shipped is ahead of all rules that TopDRL was compared with."""
    policy, works = TopdrlPolicy.load(find("topdrl")), [SMALL.draw(seed) for seed in range(10)]

    def mean(of: Any) -> float:
        return float(np.mean([(simulate(x, FLEET, of).finish - x.submit).mean() for x in works]))

    assert mean(policy) < 0.95 * min(mean(make_policy(name)) for name in PUBLISHED)


FEW: dict[str, Any] = {"slots": 6, "channels": 4, "width": 16}


def rows(settings: TopdrlSettings) -> torch.Tensor:
    """Return three states in which nothing runs or waits."""
    return torch.zeros(3, settings.rows * (settings.gpus + settings.slots * settings.widest) + 6, dtype=torch.float16)


@pytest.mark.parametrize(("decides", "slots", "actions"), [("job", 6, 7), ("gpus", 1, 32)])
def test_shapes(decides: Any, slots: int, actions: int) -> None:
    """There is a score an action and a value a state."""
    settings = TopdrlSettings(decides=decides, **FEW | {"slots": slots})
    assert ImageNetwork(settings)(rows(settings)).shape == (3, actions)
    assert ImageCritic(settings)(rows(settings)).shape == (3,)


def test_every_part_is_read() -> None:
    """A busy GPU, a job in the last slot and a backlog each change the scores of the state that they are in alone."""
    settings = TopdrlSettings(**FEW)
    torch.manual_seed(0)
    network = ImageNetwork(settings)
    before = network(rows(settings))
    last = settings.rows * (settings.gpus + settings.slots * settings.widest)
    for place in (settings.gpus - 1, last - 1, last):
        state = rows(settings)
        state[1, place] = 1.0
        changed = (network(state) != before).any(dim=1)
        assert changed.tolist() == [False, True, False]


def test_slots_share_weights() -> None:
    """The same job has the same score in any slot, beside the common part."""
    settings = TopdrlSettings(**FEW)
    torch.manual_seed(0)
    network, state = ImageNetwork(settings), rows(settings)
    queue = state[:, settings.rows * settings.gpus : -6].reshape(3, settings.slots, settings.rows, settings.widest)
    queue[1, 2, :7, :3] = queue[1, 5, :7, :3] = 1.0
    state[:, settings.rows * settings.gpus : -6] = queue.reshape(3, -1)
    scores = network(state)[1].detach()
    assert scores[2] == pytest.approx(scores[5].item(), rel=1e-5) and scores[2] != pytest.approx(scores[4].item())
