"""Many schedulers, one data centre: nothing is lost, nothing is held twice, and what an agent sees is its own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from gangplan.instances import InstanceError
from gangplan.systems.interference.agents import AgentTable, Team
from gangplan.systems.interference.baselines import CONSOLIDATE, alone, baselines, run
from gangplan.systems.interference.case import centre, moved, owners
from gangplan.systems.interference.cases import CENTRES, VALIDATION, poisson
from gangplan.systems.interference.environment import Environment, check
from gangplan.systems.interference.greedy import Greedy
from gangplan.systems.interference.market import Market, assigned


def case(network="leaf-spine", seed=VALIDATION, jobs=40, servers=16):
    """Return a small data centre."""
    return moved(poisson, network, seed, jobs, servers, load=1.2)


def bidder(part):
    """Bid by the speeds that jobs have alone."""
    return Greedy(alone(part.truth), consolidate=CONSOLIDATE)


TEAMS = {
    "nowhere": lambda c: Team(c, baselines()["lif"]),
    "random": lambda c: Team(c, baselines()["tetris"], "random"),
    "emptiest": lambda c: Team(c, baselines()["lif"], "emptiest"),
    "market": lambda c: Market(c, bidder),
    "ask": lambda c: Market(c, bidder, ask=1),
}


@pytest.mark.parametrize("name", TEAMS)
@pytest.mark.parametrize("network", ["leaf-spine", "flat"])
def test_outcome(name, network):
    """Every job runs to its end, whole on the racks of its owner."""
    found = case(network)
    team = TEAMS[name](found)
    env = run(found, team)
    assert check(env.outcome()) == []
    of = owners(found.fleet)
    for job in range(len(found.jobs)):
        assert {of[s] for s in env.rows(job)} == {team.owner[job]}


@pytest.mark.parametrize("name", TEAMS)
def test_failure(name):
    """An agent that stops loses no job: what waits goes to others, and nothing new begins on its racks."""
    found = case()
    team = TEAMS[name](found)
    team._fails = {0: 3600.0}
    env = run(found, team)
    assert check(env.outcome()) == []
    late = [job for job in range(len(found.jobs)) if env.start[job] >= 3600.0]
    assert late
    assert all(team.owner[job] == 1 for job in late)


def test_nobody_left():
    """If all agents stop, the error says which job nobody holds."""
    found = case()
    with pytest.raises(InstanceError, match="leaves nobody who can hold job"):
        run(found, Team(found, baselines()["lif"], fails={0: 0.0, 1: 0.0}))


def test_traffic():
    """Asking fewer agents costs fewer bytes; a team that forwards nowhere says nothing."""
    found = moved(poisson, "flat", VALIDATION, 40, 32, load=1.2)
    sizes = []
    for team in (TEAMS["nowhere"](found), TEAMS["ask"](found), TEAMS["market"](found)):
        run(found, team)
        sizes.append(team.traffic.size)
    assert sizes[0] == 0
    assert 0 < sizes[1] < sizes[2]


def test_part_speeds():
    """Of jobs that are alone on a part, the part's truth says what the whole one does."""
    found = case("fat-tree", servers=32)
    env = Environment(found)
    of = owners(found.fleet)
    servers = slice(int(np.argmax(of == 1)), int(np.argmax(of == 1)) + int((of == 1).sum()))
    job = int(env.waiting[0])
    part = env.part(found.at(servers), servers, [job], [])
    rows = Greedy(part.case.truth).offer(part, job)[0]
    part.place_whole(job, rows)
    env.place_whole(job, {s + servers.start: row for s, row in rows.items()})
    assert part.case.truth.speeds(part.snapshot()) == pytest.approx(found.truth.speeds(env.snapshot()))


class Cheapest(Greedy):
    """Places, again and again, the job whose offer is least."""

    def place_in(self, env, order):
        """See `Greedy`."""
        while offers := {job: found for job in env.waiting if (found := self.offer(env, job))[0]}:
            job = min(offers, key=lambda job: offers[job][1])
            env.place_whole(job, offers[job][0])


def test_market_clears():
    """On one rack the market is its bidder: the job with the least bid first, each at its best place."""
    found = moved(poisson, "flat", VALIDATION, 40, 8, load=1.2)
    other = Cheapest(alone(found.truth), consolidate=CONSOLIDATE)
    assert run(found, Market(found, bidder)).finish == pytest.approx(run(found, other).finish)


@pytest.mark.parametrize(
    ("words", "field"),
    [(("ring", 64), "network"), (("fat-tree", 40), "servers"), (("flat", 64, 6), "gpus"), (("flat", 0), "servers")],
)
def test_refused(words, field):
    """A data centre that does not exist is refused, by the argument's name."""
    with pytest.raises(InstanceError) as caught:
        centre(*words)
    assert caught.value.field == field


SIZE = {"jobs": 40, "servers": 16}


def test_random_agents() -> None:
    """Agents that decide at random run every job to its end, on the racks of one; none is passed on twice."""
    case, rng = CENTRES["leaf-spine"](VALIDATION, **SIZE), np.random.default_rng(0)
    env, table = Environment(case), AgentTable(case)
    while not env.done:
        table.begin(env)
        while asks := table.asks():
            assert len({ask.agent for ask in asks}) == len(asks)
            for ask in asks:
                table.take(ask, int(rng.choice(np.flatnonzero(ask.mask))))
        table.end()
        env.end_interval()
    assert check(env.outcome()) == []
    of, passed = owners(case.fleet), [job for _, job, _, _ in table.traffic.passed]
    assert passed and len(set(passed)) == len(passed)
    for job in range(len(case.jobs)):
        assert {of[s] for s in env.rows(job)} == {table.owner[job]}


def test_passed_on_before_it_begins() -> None:
    """Once a task of a job is placed, the job can be neither passed on nor left."""
    case = CENTRES["leaf-spine"](VALIDATION, **SIZE)
    env, table = Environment(case), AgentTable(case)
    table.begin(env)
    several = next(ask for ask in table.asks() if case.jobs.workers[ask.job] + case.jobs.servers[ask.job] > 1)
    groups = len(several.part.free)
    assert several.mask[groups:].sum() == 1  # to the other of two agents; idle racks let nothing wait
    table.take(several, int(several.mask[:groups].argmax()))
    then = next(ask for ask in table.asks() if ask.agent == several.agent)
    assert then.job == several.job and not then.mask[groups:].any()


def test_idle_racks_take_what_fits() -> None:
    """Where nothing runs, a job that fits may not wait, so that an agent that never wants to still comes to an end."""
    case = CENTRES["leaf-spine"](VALIDATION, **SIZE)
    table = AgentTable(case)
    table.begin(Environment(case))
    assert [bool(ask.mask[-1]) for ask in table.asks()] == [False]


@pytest.mark.parametrize("seed", range(30))
def test_assignment_is_least(seed: int) -> None:
    """Rows have columns of their own that they may have, and no assignment costs less."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 12)), int(rng.integers(0, 12))
    bids = np.where(rng.random((n, m)) < 0.6, rng.normal(size=(n, m)), np.inf)
    cost = np.hstack([bids, np.where(np.eye(n) > 0, rng.normal(size=(n, 1)), np.inf)])
    found = assigned(cost)
    assert len({*found}) == n
    assert cost[range(n), found].sum() == pytest.approx(cost[linear_sum_assignment(cost)].sum())
