"""What a method is, and the suite of all methods for one kind of problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.verify import Problem

from .run import Run

CPSAT = "ortools.sat.python.cp_model"
"""What all methods with CP-SAT load."""


def _always(prepared: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Method:
    """A way to solve a problem.

    Attributes:
        run: does it: offers plans and raises bounds on the `Run` until that has stopped or it is done. Its second
            argument is what the suite has prepared.
        exact: whether it proves optimality, given time.
        variants: the variants of the problem it solves; none named means all.
        suits: whether the prepared problem is small enough for its model to be worth building.
        library: a heavy one that it begins with; who runs it in a process of its own loads that before.
        warm: loads whatever else takes long the first time.
        compiled: functions that numba compiles when it is first run, see `gangplan.solvers.compiled.cache`.
    """

    run: Callable[[Run, Any], None]
    exact: bool = False
    variants: tuple[str, ...] = ()
    suits: Callable[[Any], bool] = _always
    library: str = ""
    warm: Callable[[], None] | None = None
    compiled: tuple[str, ...] = ()


def lazily(libraries: str, module: str, name: str, **options: Any) -> Callable[[Run, Any], None]:
    """Return the method `name` of `module`, imported when it is first run: some take longer to load than to solve.

    It is left out, with a note, where there is no time to import the libraries it needs, given with blanks between.
    """

    def run_lazily(run: Run, prepared: Any) -> None:
        if all(run.can_import(library) for library in libraries.split()):
            with run.phase("import"):
                method = getattr(import_module(f"gangplan.solvers.{module}"), name)
            method(run, prepared, **options)

    return run_lazily


@dataclass(frozen=True, slots=True)
class Suite:
    """Everything that solves one kind of problem.

    Attributes:
        methods: by name.
        variants: of the problem; ``("",)`` if there is but one.
        prepare: turns a run's problem into what all its methods share; proves on the way that there is no plan if
            that is easy to see, and the bounds that cost nothing.
        optimum: finds the optimum of a tiny problem by looking at every plan, `None` if there is none.
        random_problem: makes a tiny problem from a seed and a variant.
    """

    methods: Mapping[str, Method]
    variants: tuple[str, ...]
    prepare: Callable[[Run], Any]
    optimum: Callable[[Any], float | None]
    random_problem: Callable[[int, str], Any]

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
}
OBJECTIVES = tuple(_HOME)


def suite(objective: str) -> Suite:
    """Return the suite of an objective; it is imported when it is first asked for.

    Raises:
        InstanceError: naming the objective if there is none of that name.
    """
    if objective not in _HOME:
        raise InstanceError("objective", f"{objective!r} is not one of {', '.join(_HOME)}")
    found: Suite = import_module(_HOME[objective]).SUITE
    return found


def suite_of(problem: Problem) -> Suite:
    """Return the suite that solves `problem`."""
    return suite(problem.objective)
