"""The policy as a method of a solve: quick good plans to start from."""

from __future__ import annotations

from functools import cache
from typing import Any

from gangplan.instances import InstanceError
from gangplan.solvers import Run

SAMPLES = 16
_TORCH, _COMPILED = 1.5, 4.0
"""Seconds that have to be left for loading torch, and for compiled code that may have to be compiled."""


def learned(run: Run, prepared: Any) -> None:
    """Offer the plan of the shipped weights' first choice, then of the next ones; see docs/learned-step.md.

    Does nothing, and leaves a note, where torch is missing, weights are missing or broken, or there is no time.
    """
    policy = _policy(run)
    if policy is None or run.stopped:
        return
    from .play import plan_of, search

    case = policy.case(prepared)
    if run.stopped:
        return
    try:
        settings = policy.settings_of(case)[:SAMPLES]
    except InstanceError as error:
        run.note(f"learned left out: {error}")
        return
    # the portfolio's local search anneals, and looks at the clock
    for _, where, start in search(case, settings, lambda: run.stopped, annealing=False):
        if run.stopped:
            return
        plan = plan_of(case, where, start)
        run.propose(plan)
        run.offer(plan, "learned")


def kernels() -> tuple[Any, ...]:
    """Return what is compiled, see `Method.kernels`."""
    from gangplan.solvers.partition.step.improve.descent import descend
    from gangplan.solvers.partition.step.improve.polish import polish

    from .cluster import union
    from .decode import build

    return build, polish, union, descend


def warm() -> None:
    """Load weights and compiled code, so that no deadline pays for it."""
    _loaded()


def _policy(run: Run) -> Any:
    try:
        if not run.can_import("numba") or not run.can_import("torch"):
            return None
        if run.remaining() < (_COMPILED if not _loaded.cache_info().currsize else 0.0):
            run.note("learned left out: no time to load it")
            return None
        with run.phase("import"):
            return _loaded()
    except ImportError as error:
        run.note(f"learned left out: {error}")
    except InstanceError as error:
        run.note(f"learned left out: its weights do not load: {error}")
    return None


@cache
def _loaded() -> Any:
    """Return the shipped policy with all that is compiled compiled, once a process."""

    from gangplan.instances.generators.families import make

    from ..policy import weights
    from .policy import StepPolicy

    policy = StepPolicy.load(weights.find("step"))
    policy.plan(make("step", "fork_join", 0, 8))
    return policy
