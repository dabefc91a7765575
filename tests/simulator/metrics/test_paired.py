"""Differences of two policies on the same workloads."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.simulator.metrics import paired
from gangplan.systems.topdrl.evaluate import Row, evaluate
from gangplan.systems.topdrl.rules import rule
from gangplan.systems.topdrl.suites import suite


def test_pairs() -> None:
    """Differences are of the same workloads; their interval is Student's."""
    rows = evaluate({"sjf": rule("sjf"), "fcfs": rule("fcfs")}, suite("small"), range(4))
    jct = {name: np.array([x.mean_jct for x in rows if x.policy == name]) for name in ("sjf", "fcfs")}
    apart, found = jct["sjf"] - jct["fcfs"], paired(rows, "sjf", "fcfs")
    assert found.mean == pytest.approx(apart.mean()) and found.base == pytest.approx(jct["fcfs"].mean())
    assert found.margin == pytest.approx(3.182446 * apart.std(ddof=1) / 2) and found.seeds == 4
    assert found.significant == (abs(found.mean) > found.margin)
    assert paired([*rows[:2], rows[-1]], "fcfs", "sjf").margin is None
    assert [x.seed for x in rows[::2]] == [0, 1, 2, 3]


def test_bad_input() -> None:
    """A figure that there is none of, and policies that met nowhere, are refused."""
    rows = [Row("a", "small", 0, *[1.0] * 6), Row("b", "small", 1, *[1.0] * 6)]
    with pytest.raises(InstanceError, match="'jct' is none"):
        paired(rows, "a", "b", "jct")
    with pytest.raises(InstanceError, match="both 'a' and 'b'"):
        paired(rows, "a", "b")
