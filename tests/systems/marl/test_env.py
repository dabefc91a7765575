"""The environment of many schedulers: contract, exact masks, whole jobs on one rack, and pay that adds up."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.test import parallel_api_test, parallel_seed_test

from gangplan.instances import InstanceError
from gangplan.systems.interference.agents import Team
from gangplan.systems.interference.baselines import ScoreRule, run
from gangplan.systems.interference.case import owners
from gangplan.systems.interference.cases import CENTRES, VALIDATION
from gangplan.systems.interference.environment import check
from gangplan.systems.marl.env import ManyEnv

small = partial(CENTRES["flat"], jobs=40, servers=16)


def play(env: ManyEnv, rng: np.random.Generator, wait: float = 0.0, **reset: Any) -> float:
    """Play an episode with allowed actions at random, waiting with some probability where that is allowed."""
    seen, _ = env.reset(**reset)
    paid = 0.0
    while env.agents:
        actions = {}
        for agent in env.agents:
            mask = seen[agent]["action_mask"]
            assert env.observation_space(agent).contains(seen[agent])
            actions[agent] = len(mask) - 1 if mask[-1] and rng.random() < wait else rng.choice(np.flatnonzero(mask))
        seen, rewards, _, truncated, _ = env.step(actions)
        assert not any(truncated.values()) and len(set(rewards.values())) == 1
        paid += rewards[env.possible_agents[0]]
    return paid


def test_pettingzoo_contract() -> None:
    """PettingZoo's tests of a parallel environment and of its seeds pass without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(ManyEnv(), num_cycles=400)
        parallel_seed_test(ManyEnv, num_cycles=100)


@pytest.mark.parametrize("wait", [0.0, 0.8])
def test_every_job_runs_on_one_rack(wait: float) -> None:
    """However long agents wait, all jobs run, each on one agent's rack, and pay is minus the sum of JCT."""
    env, rng = ManyEnv(small), np.random.default_rng(0)
    for seed in range(5):
        paid = play(env, rng, wait, seed=seed)
        found = env.outcome
        assert check(found) == []
        assert paid == pytest.approx(-found.jct.sum(), rel=1e-9)
        rack = owners(found.case.fleet)
        for job in range(len(found.case.jobs)):
            assert len(set(rack[found.where.server[found.where.job == job]].tolist())) == 1


def test_a_rule_in_the_environment_is_the_rule() -> None:
    """Agents that put each task on the first group that takes it place as a team of that rule."""
    case = small(VALIDATION)
    env = ManyEnv(small)
    seen, _ = env.reset(seed=0, options={"case": case})
    team = Team(case, lambda part: ScoreRule("first", "shortest"))
    team.owner[:] = env._table.owner
    while env.agents:
        actions = {}
        for agent in env.agents:
            mask = seen[agent]["action_mask"].astype(bool)
            mask[env.groups : -1] = False
            actions[agent] = int(np.flatnonzero(mask)[0]) if mask.any() else env.groups + int(agent == "rack_0")
        seen, _, _, truncated, infos = env.step(actions)
        if any(truncated.values()):  # a rack that has no room must pass the job on if it may not wait
            raise AssertionError(infos)
    assert env.outcome.jct.mean() == pytest.approx(run(case, team).outcome().jct.mean())


def test_masks_are_exact() -> None:
    """A group is on offer where it has room for the task and the rest of the job fits on the rack beside it."""
    env, rng, kinds = ManyEnv(small), np.random.default_rng(1), set()
    seen, _ = env.reset(seed=3)
    while env.agents:
        actions = {}
        for k, agent in enumerate(env.agents):
            mask, job = seen[agent]["action_mask"].astype(bool), seen[agent]["job"]
            if job[0]:
                free, (workers, servers, gpus, cores) = seen[agent]["groups"][:, :3], job[2:6]
                room = free[:, 0] >= gpus if workers else free[:, 1] >= cores
                assert not (mask[: env.groups] & ~room).any()
                if not servers:  # whole GPUs are all that such a job needs
                    fits = (free[:, 0] // gpus).sum() >= workers
                    assert mask[: env.groups].tolist() == (room & fits & (free[:, 1] > 0)).tolist() or not fits
                    kinds.add(bool(fits))
                assert not mask[env.groups + k]
            else:
                assert np.flatnonzero(mask).tolist() == [len(mask) - 1]
            actions[agent] = int(rng.choice(np.flatnonzero(mask)))
        seen, *_ = env.step(actions)
    assert kinds == {True, False}


def test_same_seed_same_trajectory() -> None:
    """Two environments with one seed agree in everything that every agent sees; another seed differs."""

    def trace(seed: int) -> list[Any]:
        env, rng, found = ManyEnv(small), np.random.default_rng(0), []
        seen, _ = env.reset(seed=seed)
        while env.agents:
            found.append([value.tolist() for one in seen.values() for value in one.values()])
            seen, *_ = env.step({a: rng.choice(np.flatnonzero(seen[a]["action_mask"])) for a in env.agents})
        return found

    assert trace(3) == trace(3)
    assert trace(3) != trace(4)


def test_wrong_actions() -> None:
    """A forbidden action truncates the episode for all and says whose it was; one outside of the space is an error."""
    env = ManyEnv(small)
    with pytest.raises(ResetNeeded):
        env.step({})
    seen, _ = env.reset(seed=0)
    wait = len(seen["rack_0"]["action_mask"]) - 1
    with pytest.raises(InstanceError, match="rack_1"):
        env.step({"rack_0": wait, "rack_1": wait + 1})
    with pytest.raises(InstanceError, match="rack_1"):
        env.step({"rack_0": wait})
    guilty = next(a for a in env.agents if not seen[a]["action_mask"].all())
    bad = int(np.flatnonzero(seen[guilty]["action_mask"] == 0)[0])
    chosen = {a: int(np.flatnonzero(seen[a]["action_mask"])[0]) for a in env.agents}
    _, rewards, over, truncated, infos = env.step(chosen | {guilty: bad})
    assert set(rewards.values()) == {0.0} and not any(over.values()) and all(truncated.values())
    assert [a for a in infos if "forbidden" in infos[a]] == [guilty]
    assert env.agents == []


def test_bad_case() -> None:
    """What is no case on the same fleet is an error that names it."""
    for case in (1, CENTRES["flat"](VALIDATION, jobs=40, servers=24)):
        with pytest.raises(InstanceError) as caught:
            ManyEnv(small).reset(options={"case": case})
        assert caught.value.field == "case"
