"""The compiled network is that of torch, and a rule played over candidates is the rule as a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.learned.policy.perceptron import Weights
from gangplan.learned.training.perceptron import Perceptron
from gangplan.simulator.gangs.arrays import begin
from gangplan.simulator.gangs.listing import run_list
from gangplan.systems.topdrl.rules import Patient
from gangplan.systems.topdrl.select.episodes import RULES, guarded, known, observe, play
from gangplan.systems.topdrl.select.features import CANDIDATE, CONTEXT, WIDTH
from gangplan.systems.topdrl.select.rollouts import least_work, listed


def test_compiled_scores_are_those_of_torch(make_world: Callable[..., Any]) -> None:
    """The scores that compiled code decides by are those of the torch module."""
    torch.manual_seed(1)
    network = Perceptron(WIDTH, 24)
    jobs, cluster, state, s = make_world(3)
    k = observe(jobs, cluster, state, s)
    rows = torch.from_numpy(s.row[:k].copy())
    play(jobs, cluster, state, s, network.compiled(), RULES[0], True, int(state.count[0]) + 1)
    with torch.no_grad():
        best = int(network(rows).argmax())
    again = make_world(3)
    assert observe(*again) == k
    place, job = int(again[3].place[best]), again[2].queue[again[3].place[best]]
    assert (place < 0) == (state.start[job] > again[2].clock[0]) or place < 0
    if place >= 0:
        assert state.start[job] == again[2].clock[0]


@pytest.mark.parametrize("rule", range(len(RULES)))
@pytest.mark.parametrize("seed", range(3))
def test_a_rule_is_its_list(make_world: Callable[..., Any], rule: int, seed: int) -> None:
    """Candidate by candidate a rule makes the schedule of the list that rollouts go on by."""
    jobs, cluster, _, s = make_world(seed, arrived=1)
    noise = 1 + 0.1 * np.random.default_rng(seed).random(len(jobs.work))  # no ties: of equals either may be first
    jobs = jobs._replace(work=jobs.work * noise, expected=jobs.expected * noise)
    ours, theirs = begin(jobs, cluster), begin(jobs, cluster)
    play(jobs, cluster, ours, s, least_work(), RULES[rule], False, len(jobs.submit) + 1)
    run_list(jobs, cluster, theirs, listed(jobs, s.ideal, RULES[rule]), np.inf)
    np.testing.assert_allclose(ours.finish, theirs.finish)


def most_work() -> Weights:
    """Return a network that likes the candidate with the most work best."""
    found = least_work()
    return found._replace(last=-found.last)


def least_work_at_once() -> Weights:
    """Return a network that prefers the candidate with the least work to waiting."""
    found, first = least_work(), least_work().first.copy()
    first[(CONTEXT + CANDIDATE).index("wait")] *= -1
    return found._replace(first=first)


def test_a_bad_network_is_overruled(make_world: Callable[..., Any]) -> None:
    """A network that starts the largest job first is left for a rule, and the mean JCT is less than by itself."""
    jobs, cluster, _, s = make_world(0, arrived=1, jobs=200)
    free, held = begin(jobs, cluster), begin(jobs, cluster)
    play(jobs, cluster, free, s, most_work(), RULES[0], True, 201)
    leaders = guarded(jobs, cluster, held, s, most_work())
    assert leaders[0] == -1
    assert leaders[-1] >= 0
    assert held.finish.mean() < 0.9 * free.finish.mean()


def test_a_leader_stays_without_a_clear_lead(make_world: Callable[..., Any]) -> None:
    """Where hardly two jobs ever meet all do the same, and the network decides throughout, as it would alone."""
    jobs, cluster, _, s = make_world(0, arrived=1, jobs=200, arrival=0.004)
    free, held = begin(jobs, cluster), begin(jobs, cluster)
    play(jobs, cluster, free, s, least_work_at_once(), RULES[0], True, 201)
    assert set(guarded(jobs, cluster, held, s, least_work_at_once())) == {-1}
    assert (held.finish == free.finish).all()


def test_the_guard_knows_no_future(make_world: Callable[..., Any]) -> None:
    """What is replayed has the jobs that arrived, and true lengths of those that are done only."""
    jobs, _, state, _ = make_world(1)
    jobs = jobs._replace(expected=jobs.expected * 2)
    past = known(jobs, state, 40)
    done = state.finish[:40] <= state.clock[0]
    assert 0 < done.sum() < 40
    assert (past.work == np.where(done, jobs.work[:40], jobs.expected[:40])).all()
    assert len(past.submit) == 40
    assert len(past.first) == 41


def test_the_first_rule_is_the_patient_one(make_world: Callable[..., Any]) -> None:
    """The rule that the guard falls back on first makes the schedule of `Patient`."""
    jobs, cluster, _, s = make_world(0, arrived=1, jobs=200)
    ours, named = begin(jobs, cluster), begin(jobs, cluster)
    play(jobs, cluster, ours, s, least_work(), RULES[0], False, 201)
    Patient().finish(jobs, cluster, named)
    assert (ours.start == named.start).all()
