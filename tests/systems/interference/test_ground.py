"""Policies are compared on the same jobs, and what does not hold is refused."""

from __future__ import annotations

import pytest

from gangplan.instances import InstanceError
from gangplan.simulator.ground import against, evaluate, values
from gangplan.systems.interference.baselines import ScoreRule
from gangplan.systems.interference.cases import VALIDATION, poisson
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.ground import Interference


def test_paired_differences() -> None:
    """A policy does not differ from itself, and another by the mean of its shares, seed by seed."""
    ground = Interference(jobs=30)
    makers = {name: ground.policy(name) for name in ("lif", "lb-published")} | {"again": ground.policy("lif")}
    runs = evaluate(ground, makers, range(VALIDATION, VALIDATION + 3))
    assert against(runs, "again", "lif", "mean_jct") == (0.0, 0.0)
    share, margin = against(runs, "lb-published", "lif", "mean_jct")
    first, other = (values(runs, name, "mean_jct") for name in ("lif", "lb-published"))
    assert margin is not None and share == pytest.approx((other / first - 1).mean())


def test_no_seed() -> None:
    """Without a seed there is nothing to compare."""
    ground = Interference()
    with pytest.raises(InstanceError, match="seeds"):
        evaluate(ground, {"lif": ground.policy("lif")}, [])


class _Cheat(ScoreRule):
    def place(self, env: Environment) -> None:
        env.free[:] = env.case.capacity
        super().place(env)


def test_a_policy_that_cheats() -> None:
    """Who makes room out of nothing is found out."""
    ground = Interference(make=lambda seed: poisson(seed, jobs=40, load=3.0))
    with pytest.raises(RuntimeError, match=r"cheat, seed 1: .*holds more than it has"):
        evaluate(ground, {"cheat": lambda case, seed: _Cheat("first")}, [1])
