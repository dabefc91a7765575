"""The table: agents place whole jobs on their own racks, pass each on once, and no job is lost."""

from __future__ import annotations

import numpy as np

from gangplan.systems.interference.cases import CENTRES, VALIDATION
from gangplan.systems.interference.centres import owners
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.outcome import check
from gangplan.systems.interference.table import Table

SIZE = {"jobs": 40, "servers": 16}


def test_random_agents() -> None:
    """Agents that decide at random run every job to its end, on the racks of one; none is passed on twice."""
    case, rng = CENTRES["leaf-spine"](VALIDATION, **SIZE), np.random.default_rng(0)
    env, table = Environment(case), Table(case)
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
    env, table = Environment(case), Table(case)
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
    table = Table(case)
    table.begin(Environment(case))
    assert [bool(ask.mask[-1]) for ask in table.asks()] == [False]
