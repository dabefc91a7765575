"""A policy of the simulators that does what it should not: an error that says so, and the program goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import EngineScheduler, simulate

JOBS = Workload(("a", "b"), np.array([0.0, 1.0]), np.array([1, 1]), np.array([5.0, 5.0]))
FLEET = Fleet.regular(1, 1, 2)


def part(decision: str, act: Callable[..., Any]) -> Any:
    """Return a policy with one decision."""
    return type("Policy", (), {decision: staticmethod(act)})()


def leave(*_: Any) -> Any:
    """End the program."""
    raise SystemExit(0)


def close(*_: Any) -> Any:
    """Do as generators do that are closed."""
    raise GeneratorExit


def press(*_: Any) -> Any:
    """Stand for Ctrl-C."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("decision", ["select", "admit", "degree", "place", "wake"])
@pytest.mark.parametrize(("act", "error"), [(leave, RuntimeError), (close, RuntimeError), (press, KeyboardInterrupt)])
def test_ends_no_program(decision: str, act: Callable[..., Any], error: type[BaseException]) -> None:
    """A policy that would end the program has failed; Ctrl-C is for the caller."""
    with pytest.raises(error):
        simulate(JOBS, FLEET, EngineScheduler(part(decision, act)))


@pytest.mark.parametrize("answer", ["x", {}, [[1], [2, 3]], object()])
@pytest.mark.parametrize("decision", ["select", "degree", "place", "wake"])
def test_garbage(decision: str, answer: Any) -> None:
    """An answer that is none is refused with the name of the decision."""
    with pytest.raises(InstanceError) as caught:
        simulate(JOBS, FLEET, EngineScheduler(part(decision, lambda *_: answer)))
    assert caught.value.field == decision
