"""The policy as a method of the suite: the greedy schedule, then others, for as long as there is time."""

from __future__ import annotations

from typing import Any

from gangplan.instances import InstanceError
from gangplan.solvers.run import Run

SAMPLES = 64
"""Schedules at most."""
_PLAY = 0.5
"""What a schedule takes, as a share of what its base took: every step looks at several jobs."""


def kernels() -> tuple[Any, ...]:
    """Return what is compiled, see `Method.kernels`."""
    from .decode import place
    from .play import play

    return place, play


def warm() -> None:
    """Load weights and compiled code, so that no deadline pays for it."""
    from gangplan.instances.generators.families import make
    from gangplan.solvers.schedule.prepare import prepare

    from .player import Player
    from .policy import shipped
    from .search import plans

    problem: Any = make("schedule", "moldable", 0, 6)
    policy, player = shipped(), Player(prepare(problem))
    next(iter(plans(player, policy.nets([player])[0])))


def learned(run: Run, prepared: Any) -> None:
    """Offer the schedules of the shipped policy, the greedy one first; note why if there are none."""
    if run.stopped or not run.can_import("torch") or not run.can_import("numba"):
        return
    try:
        from .player import Player
        from .policy import shipped
        from .search import plans

        policy = shipped()
        if run.stopped:
            return
        before = run.remaining()
        player = Player(prepared, stopped=lambda: run.stopped)
        if run.remaining() < _PLAY * (before - run.remaining()):
            run.no_time("learned left out: no time to build a schedule")
            return
        net = policy.nets([player])[0]
    except ImportError as error:
        run.note(f"learned: not installed: {error}")
        return
    except (InstanceError, FloatingPointError) as error:
        run.note(f"learned: {error}")
        return
    spent, begun, best = 0.0, run.remaining(), float("inf")
    for i, cost in enumerate(plans(player, net) if not run.stopped else ()):
        spent = max(spent, begun - run.remaining())
        if cost < best:
            best = cost
            run.offer(player.plan(), "learned")
        begun = run.remaining()
        if i + 1 >= SAMPLES or run.stopped or begun < 1.5 * spent:
            return
