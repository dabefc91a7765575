"""Joint placement is never worse than the first of its orders, and better where the order matters."""

from __future__ import annotations

import numpy as np

from gangplan.systems.harmony.colocate.joint import Joint
from gangplan.systems.interference.baselines import Rule
from gangplan.systems.interference.cases import VALIDATION, poisson
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.evaluate import evaluate


def test_value_falls_with_orders() -> None:
    """On crowded clusters 12 orders reach a value at most that of one, sometimes less, and leave what ran alone."""
    values = []
    for seed in range(VALIDATION, VALIDATION + 6):
        env = Environment(poisson(seed, jobs=40, share=0.5, load=2.0))
        for _ in range(6):
            Rule("lb", together=True).place(env)
            env.end_interval()
        one, many = env.fork(), env.fork()
        Joint(env.case.truth, 2.0, tries=1).place(one)
        policy = Joint(env.case.truth, 2.0, tries=12)
        policy.place(many)
        values.append((policy.value(one), policy.value(many)))
        assert many.running[: len(env.running)] == env.running
        assert all(many.rows(job) == env.rows(job) for job in env.running)
        assert (many.free >= -1e-9 * many.size).all()
    first, best = np.array(values).T
    assert (best <= first * (1 + 1e-9)).all() and (best < first * (1 - 1e-6)).any()


def test_outcomes_hold() -> None:
    """Whole cases under the true speeds pass the check, twice the same."""
    found = [
        evaluate({"joint": lambda case: Joint(case.truth, 2.0)}, lambda seed: poisson(seed, jobs=30), [VALIDATION])
        for _ in range(2)
    ]
    assert found[0]["joint"].mean_jct == found[1]["joint"].mean_jct
