"""MARL's teacher says what its market would do."""

from __future__ import annotations

import pytest

from gangplan.systems.interference.agents import AgentTable
from gangplan.systems.interference.baselines import alone
from gangplan.systems.interference.cases import VALIDATION
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.market import Market
from gangplan.systems.interference.policies import make_policy
from gangplan.systems.marl import policy as module
from gangplan.systems.marl.policy import SAME, AgentTeacher
from gangplan.systems.marl.recipe import MarlSettings

SETTINGS = MarlSettings(servers=16, jobs=40)


def speeds(env: Environment) -> dict[int, float]:
    """Return how fast each running job would be without the others."""
    found = alone(env.case.truth).speeds(env.snapshot()) if env.running else ()
    return dict(zip(env.running, found, strict=True))


@pytest.mark.parametrize("same", [SAME, -1.0])
def test_teacher_is_right(same: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the teacher says is allowed, and by its word agents place as their market would have cleared."""
    # An agent keeps a job that is as fast on its own racks, up to SAME; by -1 none does: all go where they were won.
    # Servers of an agent are alike, so that which of them a job gets differs by the order in which jobs come.
    monkeypatch.setattr(module, "SAME", same)
    case = SETTINGS.make("flat", VALIDATION)
    env, table = Environment(case), AgentTable(case)
    teacher, market = AgentTeacher(table), make_policy("market")(case)
    passed = compared = 0
    for _ in range(6):
        assert isinstance(market, Market)
        market.owner, whole = table.owner.copy(), env.fork()
        market.place(whole)
        table.begin(env)
        teacher.begin()
        before, old = table.owner.copy(), set(env.running)
        while asks := table.asks():
            for ask in asks:
                right = teacher.label(ask)
                assert right.any() and not (right & ~ask.mask).any()
                table.take(ask, int(right.argmax()))
        table.end()
        passed += int((before != table.owner).sum())
        if not table.passed_on[env.waiting].any():
            assert set(env.running) == set(whole.running)
            ours, theirs = speeds(env), speeds(whole)
            for job in set(env.running) - old:
                assert sorted(env.rows(job).values()) == sorted(whole.rows(job).values())
                assert table.owner[job] == market.owner[job] or ours[job] >= (1 - SAME) * theirs[job]
                assert same == SAME or table.owner[job] == market.owner[job]
                compared += 1
        env.end_interval()
    assert passed and compared > 20
