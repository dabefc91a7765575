"""TopDRL's environment: what is done in it and in compiled code makes the same schedule, picture by picture."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.simulator.engine import POLICIES, EngineScheduler, simulate
from gangplan.simulator.envs import EpisodeCase, SelectEnv, completion_time
from gangplan.simulator.gangs.allocate import ALLOCATORS, Close
from gangplan.simulator.gangs.mixes import Mix
from gangplan.simulator.outcome import Outcome
from gangplan.systems.topdrl.batch import Batch
from gangplan.systems.topdrl.env import Picture, topdrl
from gangplan.systems.topdrl.image import image
from gangplan.systems.topdrl.rules import rule
from gangplan.systems.topdrl.simulate import check_rates, outcome_of
from gangplan.systems.topdrl.simulate import simulate as simulate_compiled
from gangplan.systems.topdrl.suites import suite

SMALL = suite("small")
SHORT = replace(SMALL, draw=lambda seed: (Mix(jobs=60, gpus=20, arrival=0.3).draw(seed), None), slots=7, width=16)


def rows(outcome: Outcome) -> list[Any]:
    """Return the rows of a schedule, job by job and GPU by GPU."""
    names = ("job", "node", "gpu", "start", "end", "rate")
    return sorted(zip(*(getattr(outcome, f"row_{name}").tolist() for name in names), strict=True))


def test_gymnasium_contract() -> None:
    """The registered environment passes Gymnasium's checks without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("gangplan/TopDRL-v0").unwrapped)


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("reward", ["jct", "throughput"])
def test_same_as_in_compiled_code(reward: str, allocator: str) -> None:
    """Random actions are possible, paid, seen and carried out in the environment as in a batch, to the last bit."""
    env = topdrl(SHORT, allocator, completion_time if reward == "jct" else None)
    for seed in range(3):
        work = SHORT.draw(seed)[0]
        batch = Batch([work], SHORT.fleet, count=1, slots=7, allocator=allocator, reward=reward)
        seen, _ = env.reset(options={"case": EpisodeCase(work)})
        over, rng = False, np.random.default_rng(seed)
        while not over:
            assert seen["action_mask"].astype(bool).tolist() == batch.mask[0].tolist()
            for name, drawn in image(batch, width=16)._asdict().items():
                assert np.array_equal(seen[name], drawn[0]), name
            action = rng.choice(np.flatnonzero(batch.mask[0]))
            seen, paid, over, _, _ = env.step(action)
            earned, ended = batch.act(np.array([action]))
            assert paid == pytest.approx(earned[0]) and over == ended[0]
        jobs, state = batch.episodes[0]
        made = outcome_of(work, SHORT.fleet, Proximity(), jobs, batch.cluster, state)
        assert rows(env.outcome) == rows(made)


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize(("name", "score"), [("fifo", "fcfs"), ("sjf", "sjf"), ("ljf", "ljf")])
def test_the_engine_has_this_cluster(name: str, score: str, allocator: str) -> None:
    """The engine's schedules by a rule are those of compiled code, row by row."""
    work, scheduler = SHORT.draw(5)[0], EngineScheduler((POLICIES[name](), Close(allocator)), "overtake")
    made = simulate(work, SHORT.fleet, scheduler, speeds=Proximity())
    assert rows(made) == rows(simulate_compiled(work, SHORT.fleet, rule(score, "overtake", allocator)))


def test_preemption_on_this_cluster() -> None:
    """SRTF, which stops jobs for others, runs at the rates of the GPUs that jobs have, and is ahead of SJF."""
    means = []
    for policy in ("srtf", "sjf"):
        scheduler = EngineScheduler((POLICIES[policy](), Close()), "overtake")
        runs = [simulate(SMALL.draw(seed)[0], SMALL.fleet, scheduler, speeds=Proximity()) for seed in range(2)]
        means.append(np.mean([(run.finish - run.workload.submit).mean() for run in runs]))
    assert means[0] < means[1]


def test_wide_racks_of_several_models() -> None:
    """Jobs of models that communicate more or less run as in compiled code."""
    fleet, proximity = Fleet.regular(3, 2, 8), Proximity(intensity={"a": 3.0, "b": 0.0})
    work = Mix(jobs=60, gpus=30).draw(1)
    work = replace(work, model=tuple(np.random.default_rng(0).choice(["a", "b", "c"], 60).tolist()))
    made = simulate(work, fleet, EngineScheduler((POLICIES["sjf"](), Close()), "overtake"), speeds=proximity)
    assert rows(made) == rows(simulate_compiled(work, fleet, rule("sjf", "overtake"), proximity))
    assert not check_rates(made, fleet, proximity)


def test_bad_input() -> None:
    """Images need this cluster and GPUs told apart; told durations and shared GPUs are not the engine's."""
    with pytest.raises(InstanceError, match="image"):
        SelectEnv(image=Picture)
    with pytest.raises(InstanceError, match="rows"):
        SelectEnv(image=partial(Picture, rows=0), speeds=Proximity())
    with pytest.raises(InstanceError, match="Close"):
        env = SelectEnv(image=Picture, speeds=Proximity())
        env.reset(seed=0)
        env.step(np.int64(0))
    with pytest.raises(InstanceError, match="uncertain"):
        topdrl("uncertain")
    with pytest.raises(InstanceError, match="allocator"):
        Close("far")
    with pytest.raises(InstanceError, match="speeds"):
        simulate(SHORT.draw(0)[0], SHORT.fleet, EngineScheduler((POLICIES["gandiva"](),)), speeds=Proximity())
