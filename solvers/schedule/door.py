"""A run as methods see it: times from the first release on, goals less what is owed to the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gangplan.instances.schedule import SchedulePlan

from ..run import Run
from .prepare import Prepared

Work = Callable[[Run, Prepared], None]


def from_first_release(method: Work) -> Work:
    """Return `method` on a run whose plan, objective and bound are those of the prepared problem."""
    return lambda run, p: method(Door(run, p), p)


class Door(Run):
    """The same run, but its plan starts at `Prepared.zero`, and its objective and bound are less `clock_cost`.

    Plans are offered as they are, with the starts that `Prepared.plan` gives them. Bounds are proved of starts that are
    not rounded: they are lowered by what that may be worth.
    """

    def __init__(self, run: Run, p: Prepared) -> None:
        for name, value in (("_run", run), ("_p", p), ("_seen", (None, None, None))):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._run, name, value)

    def __getattribute__(self, name: str) -> Any:
        if name in ("plan", "objective"):
            return self._look()[name == "objective"]
        if name == "bound":
            return None if self._run.bound is None else self._run.bound - self._run.zero
        return object.__getattribute__(self, name)

    @property
    def gap(self) -> float | None:
        """As the run has it."""
        gap: float | None = self._run.gap
        return gap

    def offer(self, plan: Any, by: str) -> bool:
        """See `Run.offer`."""
        better: bool = self._run.offer(plan, by)
        return better

    def raise_bound(self, value: float, by: str) -> None:
        """Record a bound on the goal of the prepared problem."""
        blur = self._p.blur
        self._run.raise_bound(self._run.zero + value - (blur if blur > 1e-12 * abs(value) else 0.0), by)

    def _look(self) -> tuple[Any, float | None]:
        """Return plan and objective, made anew where the run has another plan."""
        run, p = self._run, self._p
        if not p.zero:
            return run.plan, run.objective
        if run.plan is not self._seen[0]:
            plan = None if run.plan is None else replace(run.plan, start=p.starts(run.plan))
            found = None if plan is None else self._worth(plan) if run.zero else run.objective
            object.__setattr__(self, "_seen", (run.plan, plan, found))
        return self._seen[1], self._seen[2]

    def _worth(self, plan: SchedulePlan) -> float:
        """Return what a plan costs, to more places than the difference of two large sums has."""
        p, degree = self._p, plan.degree.tolist()
        runs = plan.degree >= 0
        seconds = [job.durations[d] if d >= 0 else 0.0 for job, d in zip(p.problem.jobs, degree, strict=True)]
        finish, lost = (plan.start + seconds)[runs], float(p.price[~runs].sum())
        return lost + float(finish.max(initial=0.0) if p.makespan else p.slope[runs] @ finish)
