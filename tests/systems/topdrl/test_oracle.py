"""The clairvoyant plan: no worse than any rule, no better than the bound, near the optimum of tiny workloads."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.mixes import Mix
from gangplan.simulator.outcome import Outcome
from gangplan.systems.topdrl.oracle import Oracle, grid
from gangplan.systems.topdrl.rules import rule
from gangplan.systems.topdrl.simulate import bound, simulate

FLEET = Fleet.regular(2, 4, 4)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("intensity", [0.0, 1.0, 4.0])
def test_bound_oracle_and_rules_in_order(seed: int, intensity: float) -> None:
    """The bound is at most the oracle's mean JCT, and that at most any rule's."""
    work, near = Mix(jobs=40, gpus=16).draw(seed), Proximity(intensity={"": intensity})
    rules = min(_mean(simulate(work, FLEET, policy, near)) for policy in grid())
    best = _mean(simulate(work, FLEET, Oracle(turns=50), near))
    assert bound(work, FLEET, near) <= best <= rules


def test_the_oracle_finds_more_and_again_the_same() -> None:
    """With turns it is ahead of the best of all rules by a twentieth, the same for the same seed."""
    work = Mix(jobs=80, arrival=0.8).draw(1)
    first, again, none = (_mean(simulate(work, FLEET, Oracle(turns=turns))) for turns in (250, 250, 0))
    assert first == again < 0.95 * none


def test_the_oracle_knows_true_durations() -> None:
    """Told that the short job is the long one, a rule errs and the oracle does not."""
    work = Workload(("a", "b"), np.zeros(2), np.array([4, 4]), np.array([10.0, 1.0]))
    told, fleet = np.array([1.0, 10.0]), Fleet.regular(1, 1, 4)
    jct = [
        _mean(simulate(work, fleet, policy, Proximity(0, 0, 0), expected=told)) for policy in (rule("sjf"), Oracle())
    ]
    assert jct == [10.5, 6.0]


def test_bad_input() -> None:
    """A negative number of turns is refused."""
    with pytest.raises(InstanceError, match="turns"):
        Oracle(turns=-1)


def _mean(outcome: Outcome) -> float:
    return float((outcome.finish - outcome.workload.submit).mean())
