"""The registry: every partition method by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from gangplan.instances import PartitionProblem
from gangplan.instances.partition import VARIANTS

from ..run import Run
from .cycles import convex
from .dominate import dominate
from .greedy import greedy
from .local_search import local_search
from .pipeline import neighbourhood, pipedream, pipeline
from .quotient import Quotient, quotient


class Reduced:
    """A problem after preprocessing, made once and shared by all methods of a solve."""

    def __init__(self, problem: PartitionProblem) -> None:
        self.problem = problem

    @cached_property
    def own(self) -> Quotient:
        """The problem in its own variant."""
        return dominate(quotient(self.problem))

    @cached_property
    def pipeline(self) -> Quotient:
        """The problem as a contiguous one: its plans are feasible in every variant."""
        if self.problem.variant == "contiguous":
            return self.own
        return dominate(quotient(replace(self.problem, variant="contiguous")))


@dataclass(frozen=True, slots=True)
class Method:
    """A way to solve a partition problem.

    Attributes:
        run: does it: offers plans and raises bounds on the `Run` until that has stopped or it is done.
        variants: the variants it solves.
        exact: whether it proves optimality, given time.
        most_literals: beyond this many, groups and nets times devices, it neither proves nor improves in a minute.
    """

    run: Callable[[Run, Reduced], None]
    variants: tuple[str, ...] = VARIANTS
    exact: bool = False
    most_literals: float = float("inf")

    def suits(self, q: Quotient) -> bool:
        """Return whether a model of `q` is small enough to be worth building."""
        return (q.n_groups + len(q.nets)) * int(q.counts.sum()) <= self.most_literals


def _seeded(method: Callable[[Run, Quotient], None]) -> Callable[[Run, Reduced], None]:
    """Give `method` greedy's plan to start from if there is none: a ceiling scales integers and cuts off trees."""

    def run_seeded(run: Run, reduced: Reduced) -> None:
        if run.plan is None:
            greedy(run, reduced.pipeline)
        if not run.stopped:
            method(run, reduced.own)

    return run_seeded


def _cpsat(run: Run, q: Quotient) -> None:
    if run.can_import("ortools"):
        with run.phase("import"):
            from .cpsat import cpsat  # takes longer to import than most pipelines to solve
        cpsat(run, q)


def _milp(run: Run, q: Quotient) -> None:
    if run.can_import("pulp"):
        with run.phase("import"):
            from .milp import milp
        milp(run, q)


METHODS: dict[str, Method] = {
    "greedy": Method(lambda run, reduced: greedy(run, reduced.pipeline)),
    "pipedream": Method(lambda run, reduced: pipedream(run, reduced.pipeline)),
    "local_search": Method(_seeded(local_search)),
    "pipeline": Method(lambda run, reduced: pipeline(run, reduced.own), variants=("contiguous",), exact=True),
    "neighbourhood": Method(_seeded(neighbourhood), variants=("contiguous",)),
    "convex": Method(lambda run, reduced: convex(run, reduced.own, reduced.pipeline), variants=("convex",)),
    "cpsat": Method(_seeded(_cpsat), exact=True, most_literals=25_000),
    "milp": Method(_seeded(_milp), exact=True, most_literals=400_000),
}
