"""The compiled network is that of torch, and a rule played over candidates is the rule as a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.systems.topdrl.arrays import begin
from gangplan.systems.topdrl.decode import run_list
from gangplan.systems.topdrl.select.episodes import observe, play
from gangplan.systems.topdrl.select.guard import RULES
from gangplan.systems.topdrl.select.network import Network
from gangplan.systems.topdrl.select.rollouts import least_work, listed


def test_compiled_scores_are_those_of_torch(make_world: Callable[..., Any]) -> None:
    """The scores that compiled code decides by are those of the torch module."""
    torch.manual_seed(1)
    network = Network(24)
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
