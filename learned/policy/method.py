"""A policy as a method of a suite: its first plan, then others, for as long as there is time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gangplan.instances import InstanceError
from gangplan.solvers.run import Run

MOST = 64
"""Plans at most."""

Proposals = Iterable[tuple[float, Callable[[], Any]]]
"""The goal of one plan after the other, and what makes the plan."""


def offer_plans(run: Run, propose: Callable[[], Proposals]) -> None:
    """Offer what a policy proposes, each plan if it is better than all before it; note why if there is none.

    Args:
        run: the solve; where it cannot import torch or numba nothing happens.
        propose: loads the policy and makes the instance ready, then returns what it proposes, nothing if the time is
            not enough. It may raise `ImportError`, `InstanceError` and `FloatingPointError`.
    """
    if run.stopped or not run.can_import("torch") or not run.can_import("numba"):
        return
    try:
        proposals = propose()
    except ImportError as error:
        run.note(f"learned: not installed: {error}")
        return
    except (InstanceError, FloatingPointError) as error:
        run.note(f"learned: {error}")
        return
    spent, begun, best = 0.0, run.remaining(), float("inf")
    for i, (cost, plan) in enumerate(proposals, 1):
        spent = max(spent, begun - run.remaining())
        if cost < best:
            best = cost
            run.offer(plan(), "learned")
        begun = run.remaining()
        if i >= MOST or run.stopped or begun < 1.5 * spent:
            return
