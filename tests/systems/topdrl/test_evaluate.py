"""Policies on the same workloads: figures by hand, and paired differences."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest

from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES, Scheduler
from gangplan.systems.topdrl.evaluate import evaluate
from gangplan.systems.topdrl.place import Close
from gangplan.systems.topdrl.rules import rule
from gangplan.systems.topdrl.suites import suite


def test_figures_by_hand() -> None:
    """A job of eight GPUs of a rack before one of all 32, each twice as long by what its GPUs pay and waits."""
    made = suite("small")
    work = Workload(("a", "b"), np.array([1.0, 1.0]), np.array([8, 32]), np.array([10.0, 20.0]))
    (row,) = evaluate({"fcfs": rule("fcfs")}, replace(made, draw=lambda seed: (work, None)), [5])
    first, second = 6 / 40 + 1 / 4, 24 / 40 + 6 / 4 + 1 / 2
    jct = 10 * (1 + first), 10 * (1 + first) + 20 * (1 + second)
    assert (row.policy, row.workload, row.seed) == ("fcfs", "small", 5)
    assert row.mean_jct == pytest.approx(np.mean(jct)) and row.makespan == pytest.approx(1 + jct[1])
    assert row.p95_jct == pytest.approx(np.quantile(jct, 0.95))
    assert row.throughput == pytest.approx((8 * 10 + 32 * 20) / jct[1])
    assert row.communication == pytest.approx((first + second) / 2)


def test_schedulers_of_the_engine() -> None:
    """The engine's SJF has the rule's figures, and SRTF, which stops jobs, those of its checked schedule."""
    schedulers = {name: Scheduler((POLICIES[name](), Close()), "overtake") for name in ("sjf", "srtf")}
    rows = evaluate({"rule": rule("sjf"), **schedulers}, suite("small"), range(2))
    for seed in range(2):
        by_rule, engine, srtf = (replace(x, ms_per_decision=0) for x in rows[3 * seed : 3 * seed + 3])
        assert astuple(engine)[2:] == pytest.approx(astuple(by_rule)[2:])
        assert srtf.mean_jct < engine.mean_jct and 0 < srtf.communication < 1
