"""The registry: every method for throughput by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from gangplan.instances import PartitionProblem
from gangplan.instances.partition import VARIANTS

from ...method import CPSAT, Method, Referee, Suite
from ...run import Run, never
from .. import offer_draft
from .bounds import counting_bound, impossible
from .dominate import dominate
from .pipeline import bounds, pipedream, pipeline
from .quotient import Quotient, quotient


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


def _start(run: Run, reduced: Reduced) -> None:
    """Offer a pipeline if there is no plan: a ceiling scales integers and cuts off trees."""
    if run.plan is None:
        pipedream(run, reduced.pipeline)


def _random_keys(run: Run, reduced: Reduced) -> None:
    from .random_keys import random_keys

    random_keys(run, reduced.pipeline)


def _cutting() -> tuple[Any, ...]:
    from .cuts import cut, extend, numbered
    from .moves import improve

    return cut, improve, extend, numbered


def _convex(run: Run, reduced: Reduced) -> None:
    from .cycles import convex

    convex(run, reduced.own, reduced.pipeline)


def _local_search(run: Run, reduced: Reduced) -> None:
    from .annealing import local_search

    local_search(run, reduced.own)


def _annealing() -> tuple[Any, ...]:
    from .annealing import anneal
    from .moves import count

    return count, anneal


def _cpsat(run: Run, reduced: Reduced) -> None:
    from .cpsat import cpsat

    cpsat(run, reduced.own)


def _milp(run: Run, reduced: Reduced) -> None:
    from .milp import milp

    milp(run, reduced.own)


def _referee() -> Referee:
    from .enumeration import optimum
    from .random_problem import random_problem

    return optimum, random_problem


METHODS: dict[str, Method] = {
    "pipedream": Method(lambda run, reduced: pipedream(run, reduced.pipeline)),
    "random_keys": Method(_random_keys, library="numba", kernels=_cutting),
    "local_search": Method(_local_search, library="numba", kernels=_annealing, start=_start),
    "pipeline": Method(lambda run, reduced: pipeline(run, reduced.own), exact=True, variants=("contiguous",)),
    "bounds": Method(lambda run, reduced: bounds(run, reduced.own), variants=("contiguous",), start=_start),
    "convex": Method(_convex, variants=("convex",)),
    "cpsat": Method(_cpsat, exact=True, suits=_at_most(25_000), library=CPSAT, start=_start),
    "milp": Method(_milp, exact=True, suits=_at_most(400_000), library="pulp", start=_start),
}
SUITE = Suite(METHODS, VARIANTS, _prepare, _referee, offer_draft)
