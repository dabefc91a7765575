"""MARL's teacher says what its market would do."""

from __future__ import annotations

from gangplan.systems.interference.cases import VALIDATION
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.market import Market
from gangplan.systems.interference.policies import make_policy
from gangplan.systems.interference.table import Table
from gangplan.systems.marl.settings import Settings
from gangplan.systems.marl.teacher import Teacher

SETTINGS = Settings(servers=16, jobs=40)


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
