"""The classic rules, tuned and as published, and oracles: what learned policies are compared with."""

from __future__ import annotations

from collections.abc import Callable

from gangplan.instances import InstanceError
from gangplan.simulator.snapshots import Truth

from .baselines import Policy, Rule
from .case import Case
from .greedy import Greedy
from .truths import HiddenTruth

CONSOLIDATE, PATIENCE = 50.0, 2.0
"""Intervals that a tuned rule lets a job wait for few servers, and an oracle for a fast place: the best on validation
seeds, as are the shortest first, and together."""
Maker = Callable[[Case], Policy]
"""Makes a policy for a case, of which it may look at all but the truth."""


def baselines() -> dict[str, Maker]:
    """Return by name the classic rules, tuned and as published (spread, by arrival, none waits), and two oracles.

    One lets a job wait for a place that is fast, the other for few servers, as the tuned rules do; the better of both
    is what to compare with. ``alone`` is the latter with the speeds that jobs have alone: what it lacks is what there
    is to learn about interference.
    """
    makers: dict[str, Maker] = {x: _always(tuned, x) for x in ("lif", "tetris", "lb", "best", "first")}
    makers |= {f"{x}-published": _always(Rule, x) for x in ("lif", "tetris", "lb")}
    makers["alone"] = lambda case: Greedy(alone(case.truth), consolidate=CONSOLIDATE)
    makers["oracle-patient"] = lambda case: Greedy(case.truth, PATIENCE)
    return makers | {"oracle-consolidated": lambda case: Greedy(case.truth, consolidate=CONSOLIDATE)}


def alone(truth: Truth) -> HiddenTruth:
    """Return a truth without interference, see `HiddenTruth.alone`."""
    if not isinstance(truth, HiddenTruth):
        raise InstanceError("truth", "is not compiled: how fast jobs are alone is not known of it")
    return truth.alone()


def tuned(score: str, *, near: bool = False) -> Rule:
    """Return a rule that takes the shortest first, together; near: that goes on where a job began."""
    return Rule(score, "shortest", together=True, patience=CONSOLIDATE, near=near)


def _always(make: Callable[[str], Rule], score: str) -> Maker:
    return lambda case: make(score)
