"""The policy as a method of the suite: the greedy schedule, then others, for as long as there is time."""

from __future__ import annotations

from typing import Any

from gangplan.solvers.run import Run

from ..policy.method import Proposals, offer_plans

_BUILD = 0.5
"""What a schedule takes, as a share of what its base took: every step looks at several jobs."""


def kernels() -> tuple[Any, ...]:
    """Return what is compiled, see `Method.kernels`."""
    from gangplan.solvers.schedule.decode import serial

    from .build import build

    return serial, build


def warm() -> None:
    """Load weights and compiled code, so that no deadline pays for it."""
    from gangplan.instances.generators.families import make
    from gangplan.solvers.schedule.prepare import prepare

    from .builder import Builder, plans
    from .policy import shipped

    problem: Any = make("schedule", "moldable", 0, 6)
    policy, builder = shipped(), Builder(prepare(problem))
    next(iter(plans(builder, policy.nets([builder])[0])))


def learned(run: Run, prepared: Any) -> None:
    """Offer the schedules of the shipped policy, the greedy one first; note why if there are none."""

    def propose() -> Proposals:
        from .builder import Builder, plans
        from .policy import shipped

        policy = shipped()
        if run.stopped:
            return ()
        before = run.remaining()
        builder = Builder(prepared, stopped=lambda: run.stopped)
        if run.remaining() < _BUILD * (before - run.remaining()):
            run.no_time("learned left out: no time to build a schedule")
            return ()
        net = policy.nets([builder])[0]
        return () if run.stopped else ((cost, builder.plan) for cost in plans(builder, net))

    offer_plans(run, propose)
