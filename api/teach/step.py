"""One step of a method: what was done, the plan so far, and what is known of the optimum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gangplan.instances import InstanceError, verify
from gangplan.solvers import Run
from gangplan.solvers.method import suite

SECONDS = 60.0
"""Limit of a method that is shown: instances of lectures take less than one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Step:
    """A step of a method, which a notebook draws.

    Attributes:
        method: whose step it is, in words.
        number: from 0, what the method begins with.
        text: what was done, a sentence or two.
        problem: what `plan` answers. While a list is scheduled, jobs that are not placed yet may be left out at no
            cost, and ops that are not placed yet are not in the graph.
        plan: the plan so far; `None` if there is none.
        objective: of that plan, as the verifier computes it, in the unit of the problem; `None` without a plan.
        bound: no plan of the whole problem is better; `None` if nothing is proved.
        prices: dual values by name; empty if the method has none.
        before: the step before; `None` of the first.
    """

    method: str
    number: int
    text: str
    problem: Any
    plan: Any = None
    objective: float | None = None
    bound: float | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    before: Step | None = None

    def __repr__(self) -> str:
        known = {"objective": self.objective, "bound": self.bound}
        numbers = ", ".join(f"{name} {value:.6g}" for name, value in known.items() if value is not None)
        return f"{self.number}: {self.text}" + f" ({numbers})" * bool(numbers)

    def steps(self) -> list[Step]:
        """Return all steps up to this one, the first first."""
        found: list[Step] = []
        step: Step | None = self
        while step is not None:
            found.append(step)
            step = step.before
        return found[::-1]

    def _repr_png_(self) -> bytes:
        from .show import scene

        return scene(self).render("step.png")


class Recorder:
    """Numbers the steps of a method and lets the verifier say what each plan is worth."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.last: Step | None = None

    def step(
        self, text: str, problem: Any, plan: Any, bound: float | None, prices: Mapping[str, float] | None = None
    ) -> Step:
        """Return the next step.

        Raises:
            AssertionError: if the plan is infeasible.
        """
        objective = None
        if plan is not None:
            verdict = verify(problem, plan)
            if verdict.objective is None:
                raise AssertionError(f"{self.method} made an infeasible plan: {'; '.join(verdict.violations[:3])}")
            objective = verdict.objective
        number = 0 if self.last is None else self.last.number + 1
        self.last = Step(self.method, number, text, problem, plan, objective, bound, prices or {}, self.last)
        return self.last


def begin(problem: Any, kinds: tuple[type, ...], method: str, seed: int = 0) -> tuple[Run, Any]:
    """Return a run of the problem and the problem as its methods take it, or say why there is nothing to show.

    Raises:
        InstanceError: if the problem is of another kind or has no plan.
    """
    if type(problem) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise InstanceError("problem", f"{method} is shown on a {names}, not on a {type(problem).__name__}")
    run = Run(problem, time_limit=SECONDS, seed=seed)
    prepared = suite(problem.objective).prepare(run)
    if run.infeasible:
        raise InstanceError("problem", f"there is no plan: {'; '.join(run.notes)}")
    return run, prepared


def named(names: Iterator[str] | list[str]) -> str:
    """Return names as words: ``a``, ``a and b``, ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
