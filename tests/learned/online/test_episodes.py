"""What compiled code decides is what the network says, and without a network it is the rule."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.learned.online.candidates import WAIT, CandidateScratch
from gangplan.learned.online.episodes import look, play
from gangplan.simulator.gangs.arrays import ARRIVED, jobs_of
from gangplan.simulator.gangs.formula import EVOLVED, finish
from gangplan.simulator.gangs.mixes import MIXES, told_means
from gangplan.simulator.gangs.step import advance, start
from gangplan.simulator.gangs.traffic import TRAIN, episode
from gangplan.systems.topdrl.rules import TopdrlPatient

from ..conftest import CORRECTED, GnnSettings, World, drawn, world_of

NAMES, SIZES = ("small", "expensive", "loaded", "uncertain", "mixed"), ("2x4x4", "4x8x8", "unequal")
FLEETS = {"2x4x4": Fleet.regular(2, 4, 4), "4x8x8": Fleet.regular(4, 8, 8)}


def mixed(name: str, fleet: Fleet, seed: int) -> World:
    """Return jobs of a mix, arriving as fast as they do on 32 GPUs, per GPU."""
    draw = told_means(MIXES[name]) if name == "uncertain" else lambda n: (MIXES[name].draw(n), None)
    work, told = draw(seed)
    jobs = jobs_of(work, Proximity(intensity={"": 4.0} if name == "expensive" else {}), told)
    return world_of(fleet, jobs.replace(submit=jobs.submit * 32 / fleet.n_gpus))


@pytest.mark.parametrize(("mix", "size"), [*product(NAMES, SIZES)])
@pytest.mark.parametrize("messages", [True, False])
def test_the_untrained_network_is_patient(
    make_policy: Callable[..., Any], unequal: Fleet, mix: str, size: str, messages: bool
) -> None:
    """To the bit: its scores begin at 0, and the best candidate of the rule it corrects is `TopdrlPatient`'s."""
    for seed in range(2):
        world = mixed(mix, FLEETS.get(size, unequal), seed)
        settings = GnnSettings(width=8, rounds=2, messages=messages)
        assert world.play(make_policy(seed, 0.0, settings)) >= len(world.jobs.submit)
        named = world.again()
        TopdrlPatient().finish(named.jobs, named.cluster, named.state)
        for ours, theirs in zip(*([*x.state.arrays().values()][-4:] for x in (world, named)), strict=True):
            assert np.array_equal(ours, theirs)
        assert np.array_equal(world.state.held, named.state.held)


@pytest.mark.parametrize("rule", range(len(CORRECTED)))
@pytest.mark.parametrize("size", ["2x4x4", "4x8x8"])
def test_a_rule_is_its_list(make_world: Callable[..., Any], make_policy: Any, rule: int, size: str) -> None:
    """Candidate by candidate a rule makes the schedule of the list that rollouts go on by."""
    for seed in range(2):
        world = make_world(seed, arrived=0, fleet=FLEETS[size])
        noise = 1 + 0.1 * np.random.default_rng(seed).random(len(world.jobs.work))  # no ties: either may be first
        jobs = world.jobs.replace(work=world.jobs.work * noise, expected=world.jobs.expected * noise)
        ours, theirs = world.again(jobs), world.again(jobs)
        ours.play(make_policy(0), rule, learned=False)
        finish(jobs, world.cluster, theirs.state, CORRECTED[rule])
        np.testing.assert_allclose(ours.state.finish, theirs.state.finish)


@pytest.mark.parametrize("seed", range(3))
def test_compiled_decisions_are_the_best_candidates(
    make_world: Callable[..., Any], make_policy: Any, seed: int
) -> None:
    """Step by step from Python, each time the best of the scores, is what the compiled episode does."""
    world, policy = make_world(seed, arrived=0, jobs=30), make_policy(seed)
    whole, steps = world.again(), 0
    decisions = whole.play(policy)
    go_on = True
    while go_on:
        seen = policy.observe(world.jobs, world.cluster, world.state)
        if seen is None:
            go_on = advance(world.jobs, world.cluster, world.state)
            continue
        best, steps = policy.choose(seen), steps + 1
        if seen.place[best] == WAIT:
            go_on = advance(world.jobs, world.cluster, world.state)
        else:
            start(world.jobs, world.cluster, world.state, int(seen.place[best]), seen.take[best].copy())
    assert steps == decisions
    assert np.array_equal(world.state.start, whole.state.start)
    assert np.array_equal(world.state.held, whole.state.held)


def test_an_episode_stops_where_it_is_told(make_world: Callable[..., Any], make_policy: Any) -> None:
    """When so many jobs have arrived, and it goes on from there as if it had not."""
    world, policy = make_world(0, arrived=0), make_policy(1)
    whole = world.again()
    first = world.play(policy, until=20)
    assert 20 <= world.state.count[ARRIVED] < 30
    assert first + world.play(policy) == whole.play(policy)
    assert np.array_equal(world.state.finish, whole.state.finish)


def test_what_jobs_are_like(make_world: Callable[..., Any]) -> None:
    """Means over the jobs that arrived."""
    world = make_world(1)
    look(world.jobs, world.cluster, world.state, world.s)
    n = int(world.state.count[ARRIVED])
    assert world.s.arrived == n
    assert world.s.mean == pytest.approx(world.jobs.expected[:n].mean())


@pytest.mark.parametrize("number", range(8))
def test_patient_on_what_is_learned_from(make_policy: Callable[..., Any], number: int) -> None:
    """The untrained network is `TopdrlPatient` on workloads of training, too: other clusters, lognormal lengths."""
    given = episode(number, 80)
    world = World(given.jobs, given.cluster, given.begin(), CandidateScratch(given.cluster))
    named = world._replace(state=given.begin())
    world.play(make_policy(0, 0.0))
    TopdrlPatient().finish(named.jobs, named.cluster, named.state)
    assert np.array_equal(world.state.start, named.state.start)


def test_jobs_that_wait_for_closer_gpus_keep_nobody_from_being_a_candidate() -> None:
    """On a crowded cluster of 256 nodes, where the first jobs by the evolved rule wait, others start all the same."""
    run = TRAIN[9].episode(2_600_000, 400)
    assert TRAIN[9].name == "mix-2048"
    alone, ours, s = run.begin(), run.begin(), CandidateScratch(run.cluster)
    finish(run.jobs, run.cluster, alone, EVOLVED)
    play(run.jobs, run.cluster, ours, s, drawn(0).net, EVOLVED, False, 1 << 60, 1 << 60)
    assert run.mean_jct(ours) < 1.05 * run.mean_jct(alone)
