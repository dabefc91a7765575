"""Policies on the same workloads: figures by hand, and paired differences."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES, Scheduler
from gangplan.simulator.proximity import evaluate, paired, rule, suite
from gangplan.simulator.proximity.evaluate import Row
from gangplan.simulator.proximity.place import Close


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


def test_pairs() -> None:
    """Differences are of the same workloads; their interval is Student's."""
    rows = evaluate({"sjf": rule("sjf"), "fcfs": rule("fcfs")}, suite("small"), range(4))
    jct = {name: np.array([x.mean_jct for x in rows if x.policy == name]) for name in ("sjf", "fcfs")}
    apart, found = jct["sjf"] - jct["fcfs"], paired(rows, "sjf", "fcfs")
    assert found.mean == pytest.approx(apart.mean()) and found.base == pytest.approx(jct["fcfs"].mean())
    assert found.margin == pytest.approx(3.182446 * apart.std(ddof=1) / 2) and found.seeds == 4
    assert found.significant == (abs(found.mean) > found.margin)
    assert paired([*rows[:2], rows[-1]], "fcfs", "sjf").margin is None
    assert [x.seed for x in rows[::2]] == [0, 1, 2, 3] and all(isinstance(x, Row) for x in rows)


def test_bad_input() -> None:
    """A figure that there is none of, and policies that met nowhere, are refused."""
    rows = [Row("a", "small", 0, *[1.0] * 6), Row("b", "small", 1, *[1.0] * 6)]
    with pytest.raises(InstanceError, match="mean_jct, p95_jct"):
        paired(rows, "a", "b", "jct")
    with pytest.raises(InstanceError, match="both 'a' and 'b'"):
        paired(rows, "a", "b")
