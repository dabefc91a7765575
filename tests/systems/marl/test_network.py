"""The networks: one set of weights for every size and topology, and what each agent does depends on the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gangplan.learned.training.trainer import start
from gangplan.systems.interference.agents import AgentTable
from gangplan.systems.interference.baselines import run
from gangplan.systems.interference.cases import CENTRES, VALIDATION
from gangplan.systems.interference.environment import Environment, check
from gangplan.systems.marl.network import Actor
from gangplan.systems.marl.policy import JointStep, MarlPolicy, PlayedLane, batch, play
from gangplan.systems.marl.recipe import MarlSettings

pytestmark = pytest.mark.usefixtures("one_thread")


def asked(**words: Any) -> tuple[Actor, PlayedLane, list[Any]]:
    """Return first weights, the first decisions in a small data centre, and what they are about."""
    settings = MarlSettings(width=8)
    case = CENTRES["leaf-spine"](VALIDATION, **{"jobs": 40, "servers": 24} | words)
    env = Environment(case)
    for _ in range(3):  # for jobs to arrive
        env.end_interval()
    lane, network = PlayedLane(env, AgentTable(case), 8), start(lambda: Actor(settings), 0, None)
    lane.begin()
    return network, lane, lane.table.asks()


def scores(network: Actor, step: JointStep) -> Any:
    """Return the logarithms of the probabilities of a step's actions."""
    with torch.no_grad():
        return network(*batch(network, [step])).double().numpy()


def test_a_batch_is_its_parts() -> None:
    """Decisions scored together get what each gets alone, and probabilities add up to 1 over what is allowed."""
    network, lane, asks = asked()
    step, at = lane.look(asks), 0
    assert len(asks) == 3
    together = scores(network, step)
    for x in step.seen:
        one = scores(network, step._replace(seen=[x]))
        assert together[at : at + len(one)] == pytest.approx(one, abs=1e-5)
        assert np.exp(one).sum() == pytest.approx(1.0, abs=1e-5)
        assert (np.isfinite(one) == x.mask).all()
        at += len(one)


def test_others_are_heard() -> None:
    """What another agent tells of its racks, or of its queue, changes an agent's decision."""
    network, lane, asks = asked()
    step = lane.look(asks[:1])
    allowed, before = step.seen[0].mask, scores(network, step)
    racks, state = step.racks.copy(), step.state.copy()
    racks[-16:, 0], state[2] = 0.0, 3.0
    for after in (scores(network, step._replace(racks=racks)), scores(network, step._replace(state=state))):
        assert abs(before[allowed] - after[allowed]).max() > 1e-4


def test_levels_are_told_apart() -> None:
    """A group on the server of a job's first task is not scored as one on another is."""
    network, lane, _ = asked()
    for queue in lane.table.queue.values():
        queue.sort(key=lambda job: -lane.env.case.jobs.workers[job])
    ask = lane.table.asks()[0]
    assert lane.env.case.jobs.workers[ask.job] > 1
    groups = len(ask.part.free)
    lane.table.take(ask, 0)
    after = next(x for x in lane.table.asks() if x.agent == ask.agent)
    found = scores(network, lane.look([after]))[:groups]
    empty = [s for s in range(2, groups) if after.mask[s]]
    assert found[empty].std() < 1e-5
    assert abs(found[1] - found[empty[0]]) > 1e-5


@pytest.mark.parametrize("name", ["leaf-spine", "fat-tree", "flat"])
def test_one_set_of_weights(name: str, tmp_path: Any) -> None:
    """The same weights, saved and read again, decide in each topology, with 4 and with 8 GPUs a server."""
    settings = MarlSettings(width=8)
    policy = MarlPolicy(start(lambda: Actor(settings), 0, None), settings)
    policy.save(tmp_path / "marl.safetensors")
    loaded = MarlPolicy.load(tmp_path / "marl.safetensors")
    for servers, gpus in ((32, 4), (64, 8)):
        case = CENTRES[name](VALIDATION, jobs=12, servers=servers, gpus=gpus)
        found = [run(case, x) for x in (policy, loaded)]
        assert check(found[0].outcome()) == []
        assert (found[0].finish == found[1].finish).all()


def test_an_agent_stops() -> None:
    """An agent that stops for good begins nothing more; its jobs that wait become others', and none is lost."""
    settings = MarlSettings(width=8)
    case = CENTRES["leaf-spine"](VALIDATION, jobs=60, servers=24)
    policy = MarlPolicy(start(lambda: Actor(settings), 0, None), settings, fails={1: 3000.0})
    outcome = run(case, policy).outcome()
    assert check(outcome) == []
    assert policy.lane is not None
    late = np.flatnonzero(outcome.start >= 3000.0)
    assert len(late) > 0
    assert (policy.lane.table.owner[late] != 1).all()


def test_what_was_decided_is_learned_from() -> None:
    """Training sees what was seen: the probabilities of the actions come out again, and rewards add up."""
    settings = MarlSettings(width=8, servers=16, jobs=20, cases=("leaf-spine",))
    case = settings.make("leaf-spine", VALIDATION)
    network, lane = start(lambda: Actor(settings), 0, None), PlayedLane(Environment(case), AgentTable(case), 8)
    play([lane], [None], network, np.random.default_rng(0))  # type: ignore[list-item]  # the true cluster pays
    steps = [step for x in lane.played for step in x.steps]
    with torch.no_grad():
        log = network(*batch(network, steps)).numpy()
    at = np.cumsum([0, *(len(d.mask) for x in steps for d in x.seen)])[:-1]
    again = log[at + [a for x in steps for a in x.action]]
    assert again == pytest.approx([b for x in steps for b in x.behaviour], abs=2e-3)
    assert sum(x.reward.sum() for x in lane.played) == pytest.approx(20.0)  # twenty jobs did all of their epochs
