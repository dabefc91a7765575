"""Policies on the same workloads: figures by hand, schedulers of the engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES, EngineScheduler
from gangplan.simulator.gangs.allocate import Close
from gangplan.simulator.ground import evaluate
from gangplan.systems.topdrl.ground import Topdrl
from gangplan.systems.topdrl.suites import suite


def test_figures_by_hand() -> None:
    """A job of eight GPUs of a rack before one of all 32, each twice as long by what its GPUs pay and waits."""
    work = Workload(("a", "b"), np.array([1.0, 1.0]), np.array([8, 32]), np.array([10.0, 20.0]))
    ground = Topdrl(replace(suite("small"), draw=lambda seed: (work, None)))
    (run,) = evaluate(ground, {"fcfs": ground.policy("fcfs")}, [5])
    first, second = 6 / 40 + 1 / 4, 24 / 40 + 6 / 4 + 1 / 2
    jct = 10 * (1 + first), 10 * (1 + first) + 20 * (1 + second)
    assert (run.policy, run.case, run.seed) == ("fcfs", "small", 5)
    found = run.figures
    assert found["mean_jct"] == pytest.approx(np.mean(jct)) and found["makespan"] == pytest.approx(1 + jct[1])
    assert found["p95_jct"] == pytest.approx(np.quantile(jct, 0.95))
    assert found["throughput"] == pytest.approx((8 * 10 + 32 * 20) / jct[1])
    assert found["communication"] == pytest.approx((first + second) / 2)


def test_schedulers_of_the_engine() -> None:
    """The engine's SJF has the rule's figures, and SRTF, which stops jobs, those of its checked schedule."""
    ground = Topdrl()
    schedulers = {name: EngineScheduler((POLICIES[name](), Close()), "overtake") for name in ("sjf", "srtf")}
    makers = {"rule": ground.policy("sjf"), **{name: ground.always(one) for name, one in schedulers.items()}}
    runs = evaluate(ground, makers, range(2))
    for seed in range(2):
        by_rule, engine, srtf = (dict(x.figures) for x in runs[3 * seed : 3 * seed + 3])
        assert [*engine.values()][:-1] == pytest.approx([*by_rule.values()][:-1])
        assert srtf["mean_jct"] < engine["mean_jct"] and 0 < srtf["communication"] < 1
