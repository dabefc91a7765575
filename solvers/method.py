"""What a method is, and the suite of all methods for one kind of problem.

A method in the `METHODS` of its folder is reached by name, `solve(..., method="mine")`; `auto` does not run it until
`hybrid/table.py` has an entry for it, which says when and for how long.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from gangplan.instances.errors import InstanceError, unknown

from .run import Run

CPSAT = "ortools.sat.python.cp_model"
"""What all methods with CP-SAT load."""


def without_plan(make: Callable[[Run, Any], Any]) -> Callable[[Run, Any], None]:
    """Return what offers a plan, for `Method.start`: what `make` offers, if there is none yet and there is time."""

    def start(run: Run, prepared: Any) -> None:
        if run.plan is None and not run.stopped:
            make(run, prepared)

    return start


@dataclass(frozen=True, slots=True)
class Method:
    """A way to solve a problem.

    Attributes:
        function: does it: offers plans and raises bounds on the `Run` until that has stopped or it is done; it may end
            with `TimeoutError` then. Its second argument is what the suite has prepared.
        exact: whether it proves optimality, given time.
        variants: the variants of the problem it solves; none named means all.
        suits: whether the prepared problem is small enough for its model to be worth building.
        library: a heavy one that it imports; who runs it in a process of its own loads that before.
        start: offers a plan to start from if there is none.
        draws: whether it finds other plans with another seed, once it has ended.
    """

    function: Callable[[Run, Any], None]
    exact: bool = False
    variants: tuple[str, ...] = ()
    suits: Callable[[Any], bool] = lambda prepared: True
    library: str = ""
    start: Callable[[Run, Any], None] | None = None
    draws: bool = False

    @property
    def installed(self) -> bool:
        """Whether its library is there."""
        package = self.library.partition(".")[0]
        return not package or sys.modules.get(package) is not None or find_spec(package) is not None

    def run(self, run: Run, prepared: Any) -> None:
        """Do it, from a plan to start from; leave a note where there is no time to import its library."""
        if self.start is not None:
            self.start(run, prepared)
            if run.stopped:
                return
        if not self.library or run.can_import(self.library):
            with run.phase("import"):
                if self.library:
                    import_module(self.library)
            self.function(run, prepared)


def plain_methods(
    module: Any,
    start: Callable[[Run, Any], None] | None = None,
    rows_milp: Callable[[Any], int] | None = None,
    exact: bool = True,
) -> dict[str, Method]:
    """Return ``plain_cpsat`` and ``plain_milp``; with a start also ``milp``, the latter from a plan.

    Args:
        module: has a function of each of the two names, and `rows`, the number of rows of a problem's model, which
            raises `NotImplementedError` for what is not modelled.
        start: offers a plan if there is none, which makes the MILP's big M small.
        rows_milp: number of rows of the MILP if it has more.
    """

    def within(rows: Callable[[Any], int]) -> Callable[[Any], bool]:
        def suits(prepared: Any) -> bool:
            from .plain import ROWS

            try:
                return rows(prepared.problem) <= ROWS
            except NotImplementedError:
                return False

        return suits

    milp = Method(module.plain_milp, exact=exact, suits=within(rows_milp or module.rows), library="highspy")
    cpsat = Method(module.plain_cpsat, exact=exact, suits=within(module.rows), library=CPSAT)
    return {**({"milp": replace(milp, start=start)} if start else {}), "plain_cpsat": cpsat, "plain_milp": milp}


@dataclass(frozen=True, slots=True)
class Suite:
    """Everything that solves one kind of problem.

    Attributes:
        methods: by name, as ``method=`` takes them; `auto` runs those that `hybrid/table.py` has an entry for.
        variants: of the problem; ``("",)`` if there is but one.
        prepare: turns a run's problem into what all its methods share; proves on the way that there is no plan if
            that is easy to see, and the bounds that cost nothing. Raises `TimeoutError` once the run has stopped.
        optimum: returns the optimum of a tiny problem by looking at every plan, `None` if there is none.
        random_problem: makes a tiny problem from a seed and a variant.
        draft: offers a plan that costs next to nothing, without what is prepared if that is not there.
        repair: returns a plan with the choices of one whose times do not hold, which it was made for; `None` if plans
            have no times.
        bare: returns what plain models ask of a problem that is not prepared: by default that it has a problem.
    """

    methods: Mapping[str, Method]
    variants: tuple[str, ...]
    prepare: Callable[[Run], Any]
    optimum: Callable[[Any], float | None]
    random_problem: Callable[[int, str], Any]
    draft: Callable[[Run, Any], None] = lambda run, prepared: None
    repair: Callable[[Any, Any], Any] | None = None
    bare: Callable[[Run], Any] = lambda run: run

    def prepared(self, run: Run) -> Any:
        """Return what the methods of a run share."""
        return (self.bare if run.bare else self.prepare)(run)

    def variants_of(self, method: Method) -> tuple[str, ...]:
        """Return the variants that `method` solves."""
        return method.variants or self.variants


_HOME = {
    "throughput": "gangplan.solvers.partition.throughput.methods",
    "latency": "gangplan.solvers.partition.latency.methods",
    "step": "gangplan.solvers.partition.step.methods",
    "stages": "gangplan.solvers.partition.stages.methods",
    "placement": "gangplan.solvers.placement.methods",
    "schedule": "gangplan.solvers.schedule.methods",
    "layout": "gangplan.solvers.layout.methods",
    "pipeline": "gangplan.solvers.pipeline.methods",
}
OBJECTIVES = tuple(_HOME)


def suite(objective: str) -> Suite:
    """Return the suite of an objective; it is imported when it is first asked for."""
    if objective not in _HOME:
        raise InstanceError("objective", unknown(objective, _HOME))
    found: Suite = import_module(_HOME[objective]).SUITE
    return found
