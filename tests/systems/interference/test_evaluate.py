"""Policies are compared on the same jobs, and what does not hold is refused."""

from __future__ import annotations

import pytest

from gangplan.instances import InstanceError
from gangplan.systems.interference.baselines import Rule
from gangplan.systems.interference.cases import VALIDATION, poisson
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.evaluate import baselines, evaluate, report


def test_paired_differences() -> None:
    """A policy does not differ from itself, and the report has a row for each."""
    found = evaluate(
        {name: baselines()[name] for name in ("lif", "lb-published")} | {"again": baselines()["lif"]},
        lambda seed: poisson(seed, jobs=30),
        range(VALIDATION, VALIDATION + 3),
    )
    assert found["again"].against(found["lif"]) == (0.0, 0.0)
    share, margin = found["lb-published"].against(found["lif"])
    assert margin is not None and share == pytest.approx(
        (found["lb-published"].mean_jct / found["lif"].mean_jct - 1).mean()
    )
    assert len(report(found).splitlines()) == 5 and "| again |" in report(found)


def test_no_seed() -> None:
    """Without a seed there is nothing to compare."""
    with pytest.raises(InstanceError, match="seeds"):
        evaluate(baselines(), poisson, [])


class _Cheat(Rule):
    def place(self, env: Environment) -> None:
        env.free[:] = env.case.capacity
        super().place(env)


def test_a_policy_that_cheats() -> None:
    """Who makes room out of nothing is found out."""
    with pytest.raises(RuntimeError, match="holds more than it has"):
        evaluate({"cheat": lambda case: _Cheat("first")}, lambda seed: poisson(seed, jobs=40, load=3.0), [1])
