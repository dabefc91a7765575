"""The table: agents place whole jobs on their own racks, pass each on once, and no job is lost."""

from __future__ import annotations

import numpy as np

from gangplan.learned.interference.policies import make_policy
from gangplan.learned.marl.settings import Settings
from gangplan.learned.marl.table import Table
from gangplan.learned.marl.teacher import Teacher
from gangplan.simulator.interference.cases import VALIDATION
from gangplan.simulator.interference.centres import owners
from gangplan.simulator.interference.environment import Environment
from gangplan.simulator.interference.market import Market
from gangplan.simulator.interference.outcome import check

SETTINGS = Settings(servers=16, jobs=40)


def test_random_agents() -> None:
    """Agents that decide at random run every job to its end, on the racks of one; none is passed on twice."""
    case, rng = SETTINGS.make("leaf-spine", VALIDATION), np.random.default_rng(0)
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
    case = SETTINGS.make("leaf-spine", VALIDATION)
    env, table = Environment(case), Table(case)
    table.begin(env)
    several = next(ask for ask in table.asks() if case.jobs.workers[ask.job] + case.jobs.servers[ask.job] > 1)
    groups = len(several.part.free)
    assert several.mask[groups:].sum() == 1  # to the other of two agents; idle racks let nothing wait
    table.take(several, int(several.mask[:groups].argmax()))
    then = next(ask for ask in table.asks() if ask.agent == several.agent)
    assert then.job == several.job and not then.mask[groups:].any()


def test_teacher_is_right() -> None:
    """What the teacher says is allowed, and by its word agents place as their market would have cleared."""
    case = SETTINGS.make("flat", VALIDATION)
    env, table = Environment(case), Table(case)
    teacher, market = Teacher(table), make_policy("market")(case)
    passed = 0
    for _ in range(6):
        assert isinstance(market, Market)
        market.owner, whole = table.owner.copy(), env.fork()
        market.place(whole)
        table.begin(env)
        teacher.begin()
        before = table.owner.copy()
        while asks := table.asks():
            for ask in asks:
                right = teacher.label(ask)
                assert right.any() and not (right & ~ask.mask).any()
                table.take(ask, int(right.argmax()))
        table.end()
        passed += int((before != table.owner).sum())
        if not table.passed_on[env.waiting].any():
            assert env.running == whole.running or set(env.running) == set(whole.running)
        env.end_interval()
    assert passed


def test_idle_racks_take_what_fits() -> None:
    """Where nothing runs, a job that fits may not wait, so that an agent that never wants to still comes to an end."""
    case = SETTINGS.make("leaf-spine", VALIDATION)
    table = Table(case)
    table.begin(Environment(case))
    assert [bool(ask.mask[-1]) for ask in table.asks()] == [False]
