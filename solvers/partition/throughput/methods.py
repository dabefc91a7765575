"""The registry: every method for throughput by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from gangplan.instances import PartitionProblem
from gangplan.instances.lazy import on_demand
from gangplan.instances.partition import VARIANTS

from ...method import CPSAT, Method, Suite, plain_methods
from ...run import Run, never
from .. import offer_draft
from .bounds import counting_bound, impossible
from .dominate import dominate
from .pipeline import bounds, pipeline
from .quotient import Quotient, quotient

if TYPE_CHECKING:
    from .. import referee, tiny
    from . import annealing, cycles, exact, orders, plain
else:
    globals().update(on_demand(__package__, "annealing cycles exact orders plain"))
    globals().update(on_demand("gangplan.solvers.partition", "referee tiny"))


class ReducedThroughput:
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

    @cached_property
    def decoder(self) -> orders.OrderDecoder | None:
        """What makes pipelines of orders, `None` if there plainly is no plan."""
        return orders.decoder_of(self.pipeline)


def _prepare(run: Run) -> ReducedThroughput:
    reduced = ReducedThroughput(run.problem, lambda: run.stopped)
    if (reason := impossible(reduced.own)) is not None:
        run.prove_infeasible("sums", reason)
    else:
        run.raise_bound(counting_bound(reduced.own, lambda: run.stopped), "counting")
    return reduced


def _at_most(literals: int) -> Callable[[ReducedThroughput], bool]:
    def suits(reduced: ReducedThroughput) -> bool:
        q = reduced.own
        return (q.n_groups + len(q.nets)) * int(q.counts.sum()) <= literals

    return suits


def _start(run: Run, reduced: ReducedThroughput) -> None:
    """Offer a pipeline if there is no plan: a ceiling scales integers and cuts off trees."""
    if run.plan is None:
        _pipedream(run, reduced)


def _pipedream(run: Run, reduced: ReducedThroughput) -> None:
    if reduced.decoder is not None:
        orders.pipedream(run, reduced.decoder)


def _bounds(run: Run, reduced: ReducedThroughput) -> None:
    bounds(run, reduced.own, reduced.own if run.problem.variant == "contiguous" else None)


def _convex(run: Run, reduced: ReducedThroughput) -> None:
    pipeline(run, reduced.pipeline, cycles.cyclic_bound(reduced.own))


def _on_own(method: Callable[[Run, Quotient], None]) -> Callable[[Run, ReducedThroughput], None]:
    """Return `method` on the problem in its own variant."""
    return lambda run, reduced: method(run, reduced.own)


METHODS: dict[str, Method] = {
    "pipedream": Method(_pipedream),
    "local_search": Method(_on_own(annealing.local_search), start=_start, draws=True),
    "pipeline": Method(_on_own(pipeline), exact=True, variants=("contiguous",), start=_start),
    "bounds": Method(_bounds, start=_start),
    "convex": Method(_convex, variants=("convex",), start=_start),
    "cpsat": Method(_on_own(exact.cpsat), exact=True, suits=_at_most(25_000), library=CPSAT, start=_start),
    "milp": Method(_on_own(exact.milp), exact=True, suits=_at_most(400_000), library="highspy", start=_start),
    **plain_methods(plain, exact=False),
}
SUITE = Suite(METHODS, VARIANTS, _prepare, referee.optimum, tiny.random_throughput, offer_draft)
