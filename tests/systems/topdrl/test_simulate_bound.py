"""Proved plans of a few jobs: those of enumeration, no worse than any policy's, and no better than the bound."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from benchmarks.topdrl_window import window
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.mixes import Mix
from gangplan.systems.topdrl.oracle import Oracle
from gangplan.systems.topdrl.rules import rule
from gangplan.systems.topdrl.simulate import bound, simulate

FLEETS = (Fleet.regular(1, 2, 2), Fleet.regular(2, 2, 1), Fleet.regular(2, 1, 3))


def _optimum(work: Workload, fleet: Fleet, near: Proximity) -> float:
    """Return the least mean JCT: every order of starts, every place, each start no earlier than the one before."""
    size, n, best = fleet.gpus.tolist(), work.n_jobs, np.inf
    places = [[p for p in product(*(range(x + 1) for x in size)) if sum(p) == g] for g in work.gpus.tolist()]
    for order in permutations(range(n)):
        stack: list[tuple[int, float, float, tuple[tuple[float, tuple[int, ...]], ...]]] = [(0, 0.0, 0.0, ())]
        while stack:
            at, now, total, held = stack.pop()
            if total >= best:
                continue
            if at == n:
                best = total
                continue
            j = order[at]
            for place in places[j]:
                begin = max(now, float(work.submit[j]))
                for t in sorted({begin, *(end for end, _ in held if end > begin)}):
                    used = np.sum([p for end, p in held if end > t] + [place], axis=0)
                    if (used <= size).all():
                        break
                cost = near.cost(fleet, range(len(size)), place)
                end = t + float(work.duration[j]) * (1 + near.intensity.get("", 1.0) * cost)
                stack.append((at + 1, t, total + end - float(work.submit[j]), (*held, (end, place))))
    return best / n


def _random(seed: int) -> tuple[Workload, Fleet, Proximity]:
    rng = np.random.default_rng(seed)
    fleet = FLEETS[seed % len(FLEETS)]
    n = int(rng.integers(3, 5)) if fleet.n_nodes < 4 else 3
    unit = (1.0, np.pi)[seed // 3 % 2]
    work = Workload(
        tuple(map(str, range(n))),
        rng.integers(0, 6, n) * unit,
        rng.integers(1, fleet.n_gpus + 1, n),
        rng.integers(1, 10, n) * unit,
    )
    return work, fleet, Proximity(intensity={"": float(rng.choice([0.0, 1.0, 5.0]))})


@pytest.mark.parametrize("seed", range(24))
def test_as_enumeration(seed: int) -> None:
    """The window is proved and has the least mean JCT; the bound is no more, the oracle's plan no less."""
    work, fleet, near = _random(seed)
    best, found = _optimum(work, fleet, near), window(work, fleet, near)
    assert found.proved
    assert found.mean_jct == pytest.approx(best, rel=1e-6)
    assert bound(work, fleet, near) <= best * (1 + 1e-9)
    oracle = simulate(work, fleet, Oracle(turns=50), near)
    assert (oracle.finish - work.submit).mean() >= best * (1 - 1e-9)


def test_a_window_out_of_time_keeps_plan_and_bound() -> None:
    """With hardly any time the plan is the oracle's, no worse than a rule's, above a bound, and not called proved."""
    work, fleet = Mix(jobs=15, arrival=1.0).draw(0), Fleet.regular(2, 4, 4)
    found = window(work, fleet, time_limit=0.01, turns=0)
    by_rule = simulate(work, fleet, rule("linear"))
    assert found.bound < found.mean_jct <= (by_rule.finish - work.submit).mean()
    assert not found.proved


def test_bad_input() -> None:
    """No time at all is refused."""
    with pytest.raises(InstanceError, match="time_limit"):
        window(Mix(jobs=2).draw(0), FLEETS[0], time_limit=0)
