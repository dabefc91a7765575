"""The environment of many schedulers: contract, exact masks, jobs in one part, and one scheduler as the engine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.test import parallel_api_test, parallel_seed_test

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES, Scheduler, simulate
from gangplan.simulator.envs import Case, ManyEnv, Synthetic

UNEVEN = replace(Fleet.regular(3, 3, 4), gpus=[4, 4, 4, 2, 2, 0, 4, 1, 4], cpu=[8.0] * 9)
"""Racks of 12, 4 and 9 GPUs."""
FIFO = Scheduler((POLICIES["fifo"](),))


def busy(rng: np.random.Generator) -> Case:
    """Draw jobs that keep the uneven racks busy, some of which need cores and fit only some racks."""
    work = Synthetic(25, jobs=40, load=1.3, sizes=(1, 2, 4, 8))(rng).workload
    return Case(replace(work, cpu=work.gpus * rng.choice([0.0, 2.0], work.n_jobs)))


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
        parallel_api_test(ManyEnv(UNEVEN, busy), num_cycles=400)
        parallel_seed_test(ManyEnv, num_cycles=100)


@pytest.mark.parametrize("consolidate", [False, True])
def test_one_scheduler_is_the_engine(consolidate: bool) -> None:
    """An agent that owns everything and takes the engine's choice of node makes the engine's schedule."""
    scheduler, fleet = replace(FIFO, consolidate=consolidate), Fleet.regular(2, 2, 4)
    env = ManyEnv(fleet, scheduler=scheduler, level=1)
    (agent,) = env.possible_agents
    for seed in range(3):
        case = Synthetic(16, jobs=40, load=1.1)(np.random.default_rng(seed))
        seen, _ = env.reset(options={"case": case})
        while env.agents:
            allowed = np.flatnonzero(seen[agent]["action_mask"])
            if consolidate and allowed[0] < env.nodes:  # best fit
                allowed = allowed[allowed < env.nodes]
                allowed = allowed[[np.argmin(seen[agent]["nodes"][allowed, 1])]]
            seen, *_ = env.step({agent: allowed[0]})
        expected = simulate(case.workload, fleet, scheduler)
        assert np.array_equal(env.outcome.start, expected.start)
        for field in ("row_node", "row_gpus"):
            pair = [getattr(o, field)[np.lexsort((o.row_node, o.row_job))] for o in (env.outcome, expected)]
            assert np.array_equal(*pair)


@pytest.mark.parametrize("consolidate", [False, True])
@pytest.mark.parametrize("wait", [0.0, 0.8])
def test_every_job_runs_in_one_part(wait: float, consolidate: bool) -> None:
    """However long agents like to wait, all jobs run, each on nodes of one agent, and pay is minus the sum of JCT."""
    env, rng = ManyEnv(UNEVEN, busy, replace(FIFO, consolidate=consolidate)), np.random.default_rng(0)
    rack = UNEVEN.topology.group[0]
    for seed in range(15):
        paid = play(env, rng, wait, seed=seed)
        found = env.outcome
        assert found.admitted.all()
        assert paid == pytest.approx(-(found.finish - found.workload.submit).sum(), rel=1e-9)
        for job in range(found.workload.n_jobs):
            assert len(set(rack[found.row_node[found.row_job == job]].tolist())) == 1


def test_masks_are_exact() -> None:
    """A node is on offer where the gang can be completed, another agent where the job is new and could ever fit."""
    env, rng = ManyEnv(UNEVEN, busy), np.random.default_rng(1)
    rack, gpus = UNEVEN.topology.group[0], UNEVEN.gpus.astype(int)
    passed_on: set[int] = set()
    kinds = set()
    for seed in range(4):
        seen, _ = env.reset(seed=seed)
        passed_on.clear()
        while env.agents:
            episode, team = env._episode, env._team
            work, view = episode.case.workload, episode.view
            free, cores = gpus.copy(), UNEVEN.cpu.copy()
            for other in view.running.tolist():
                rows = view.rows(other)
                free[rows.node] -= rows.gpus
                cores[rows.node] -= rows.gpus * work.cpu[other] / work.gpus[other]
            actions = {}
            for k, agent in enumerate(env.agents):
                mask, job, gang = seen[agent]["action_mask"].astype(bool), team.firsts[k], team.gangs[k]
                if job >= 0 and mask[:-1].any():
                    each = work.cpu[job] / work.gpus[job]
                    staged = np.zeros(9, dtype=int) if gang is None else gang.staged
                    left = work.gpus[job] - staged.sum()
                    here = np.minimum(free - staged, ((cores - staged * each) // each if each else free)).astype(int)
                    here[(rack != k) | (staged > 0)] = 0
                    nodes = (here[rack == k] > 0) & (here.sum() >= left)
                    assert mask[: env.nodes].tolist() == nodes.tolist()
                    ever = np.minimum(gpus, UNEVEN.cpu // each if each else gpus)
                    could = [ever[rack == q].sum() >= work.gpus[job] and q != k for q in range(3)]
                    new = job not in passed_on and not staged.any()
                    assert mask[env.nodes : -1].tolist() == [new and c for c in could]
                    assert not (mask[-1] and staged.any())
                    kinds |= {*nodes.tolist(), "new" if new else "old"}
                action = int(rng.choice(np.flatnonzero(mask)))
                if env.nodes <= action < len(mask) - 1:
                    passed_on.add(job)
                actions[agent] = action
            seen, *_ = env.step(actions)
    assert kinds == {True, False, "new", "old"}


def test_same_seed_same_trajectory() -> None:
    """Two environments with one seed agree in everything that every agent sees; another seed differs."""

    def trace(seed: int) -> list[Any]:
        env, rng, found = ManyEnv(UNEVEN, busy), np.random.default_rng(0), []
        seen, _ = env.reset(seed=seed)
        while env.agents:
            found.append([value.tolist() for one in seen.values() for value in one.values()])
            seen, *_ = env.step({a: rng.choice(np.flatnonzero(seen[a]["action_mask"])) for a in env.agents})
        return found

    assert trace(3) == trace(3)
    assert trace(3) != trace(4)


def test_wrong_actions() -> None:
    """A forbidden action truncates the episode for all and says whose it was; one outside of the space is an error."""
    env = ManyEnv()
    with pytest.raises(ResetNeeded):
        env.step({})
    seen, _ = env.reset(seed=0)
    wait = len(seen["rack_0"]["action_mask"]) - 1
    waiting = dict.fromkeys(env.agents, wait)
    with pytest.raises(InstanceError, match="rack_1"):
        env.step(waiting | {"rack_1": wait + 1})
    with pytest.raises(InstanceError, match="rack_3"):
        env.step(dict.fromkeys(env.agents[:3], wait))
    guilty = next(a for a in env.agents if not seen[a]["action_mask"][0])
    _, rewards, over, truncated, infos = env.step(waiting | {guilty: 0})
    assert set(rewards.values()) == {0.0} and not any(over.values()) and all(truncated.values())
    assert [a for a in infos if "forbidden" in infos[a]] == [guilty]
    assert env.agents == []


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("discipline", lambda: ManyEnv(scheduler=replace(FIFO, discipline="overtake"))),
        ("scheduler", lambda: ManyEnv(scheduler=Scheduler((POLICIES["tetris"](),)))),
        ("level", lambda: ManyEnv(level=2)),
        ("case", lambda: ManyEnv().reset(options={"case": 1})),
        ("gpus[1]", lambda: ManyEnv().reset(options={"case": Case(Workload(("a", "b"), [0, 0], [1, 17], [1, 1]))})),
    ],
)
def test_bad_arguments(field: str, make: Callable[[], Any]) -> None:
    """What makes no environment or episode is an error that names it."""
    with pytest.raises(InstanceError) as caught:
        make()
    assert caught.value.field == field
