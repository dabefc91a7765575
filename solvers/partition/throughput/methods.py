"""The registry: every method for throughput by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from gangplan.instances import PartitionProblem
from gangplan.instances.partition import VARIANTS

from ...method import CPSAT, Method, Suite, lazily
from ...run import Run
from ...watch import never
from ..draft import draft
from .bounds import counting_bound, impossible
from .cycles import convex
from .dominate import dominate
from .enumeration import optimum
from .greedy import greedy
from .pipeline import neighbourhood, pipedream, pipeline
from .quotient import Quotient, quotient
from .random_problem import random_problem


class Reduced:
    """A problem after preprocessing, made once and shared by all methods of a solve."""

    def __init__(self, problem: PartitionProblem, stopped: Callable[[], bool] = never) -> None:
        self.problem, self.stopped = problem, stopped

    @cached_property
    def own(self) -> Quotient:
        """The problem in its own variant."""
        return dominate(quotient(self.problem, self.stopped), self.stopped)

    @cached_property
    def pipeline(self) -> Quotient:
        """The problem as a contiguous one: its plans are feasible in every variant."""
        if self.problem.variant == "contiguous":
            return self.own
        flat = quotient(replace(self.problem, variant="contiguous"), self.stopped)
        return dominate(flat, self.stopped)


def _prepare(run: Run) -> Reduced:
    reduced = Reduced(run.problem, lambda: run.stopped)
    reason = impossible(reduced.own)
    if reason is not None:
        run.note(reason)
        run.prove_infeasible()
    else:
        run.raise_bound(counting_bound(reduced.own, lambda: run.stopped), "counting")
    return reduced


def _at_most(literals: int) -> Callable[[Reduced], bool]:
    """Accept problems of so many literals, groups and nets times devices: beyond, a minute neither proves nor helps."""

    def suits(reduced: Reduced) -> bool:
        q = reduced.own
        return (q.n_groups + len(q.nets)) * int(q.counts.sum()) <= literals

    return suits


def _seeded(method: Callable[[Run, Quotient], None]) -> Callable[[Run, Reduced], None]:
    """Give `method` greedy's plan to start from if there is none: a ceiling scales integers and cuts off trees."""

    def run_seeded(run: Run, reduced: Reduced) -> None:
        if run.plan is None:
            greedy(run, reduced.pipeline)
        if not run.stopped:
            method(run, reduced.own)

    return run_seeded


_cpsat = lazily("ortools", "partition.throughput.cpsat", "cpsat")
_local_search = lazily("numba", "partition.throughput.local_search", "local_search")
_milp = lazily("pulp", "partition.throughput.milp", "milp")
METHODS: dict[str, Method] = {
    "greedy": Method(lambda run, reduced: greedy(run, reduced.pipeline)),
    "pipedream": Method(lambda run, reduced: pipedream(run, reduced.pipeline)),
    "local_search": Method(
        _seeded(_local_search),
        library="numba",
        compiled=("solvers.partition.throughput.moves:count", "solvers.partition.throughput.anneal:anneal"),
    ),
    "pipeline": Method(lambda run, reduced: pipeline(run, reduced.own), exact=True, variants=("contiguous",)),
    "neighbourhood": Method(_seeded(neighbourhood), variants=("contiguous",)),
    "convex": Method(lambda run, reduced: convex(run, reduced.own, reduced.pipeline), variants=("convex",)),
    "cpsat": Method(_seeded(_cpsat), exact=True, suits=_at_most(25_000), library=CPSAT),
    "milp": Method(_seeded(_milp), exact=True, suits=_at_most(400_000)),
}
SUITE = Suite(METHODS, VARIANTS, _prepare, optimum, random_problem, draft)
