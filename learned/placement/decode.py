"""Whole placements from scores: greedily, or sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.placement.prepare import Batch

from .build import Builder, Decision, run
from .head import Context
from .policy import PlacementPolicy


@dataclass(slots=True)
class Trace:
    """The decisions of one placement, and the place that was taken in each."""

    decisions: list[Decision] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)


def turns(batch: Batch) -> FloatArray:
    """Return how early each job's turn is before anything is learned, (J,): the constrained and the large ones first.

    The same as the order of the heuristics, as numbers: one is a factor of two in GPUs.
    """
    found = np.zeros(len(batch.jobs))
    for j, job in enumerate(batch.jobs):
        choice = float(batch.allowed[j][batch.kind].sum()) / batch.n_nodes if job.requires else 1.0
        found[j] = np.log2(max(job.workers[0] * job.worker.gpu, 2.0**-6))
        found[j] += 100.0 * (job.value is None) + 20.0 * job.whole_nodes + 6.0 * (1 - choice)
    return found


class Decoder:
    """Places one batch again and again.

    Args:
        policy: scores places; None takes the place of the least cost, in the order of the heuristics.
        batch: the problem as the methods see it.
        context: of the batch, by default made here.
        until: ends a placement early once it says so.
    """

    def __init__(
        self,
        policy: PlacementPolicy | None,
        batch: Batch,
        context: Context | None = None,
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        self.policy, self.batch, self.builder = policy, batch, Builder(batch)
        self.context = context or (policy.context(batch.problem) if policy else None)
        self.until = until
        self.turns = turns(batch) + (self.context.turn if self.context else 0.0)

    def order(self, rng: np.random.Generator | None = None, noise: float = 0.0) -> list[int]:
        """Return the jobs in the order in which they are placed."""
        key = self.turns if rng is None else self.turns + noise * rng.standard_normal(len(self.turns))
        return sorted(self.builder.free(), key=lambda j: -key[j])

    def scores(self, decision: Decision) -> FloatArray:
        """Return the scores of the places of a decision."""
        if self.policy is None or self.context is None:
            return np.asarray(-12.0 * decision.price / self.builder.unit)
        return self.policy.scores(decision, self.context)

    def place(
        self,
        rng: np.random.Generator | None = None,
        noise: float = 0.5,
        order_noise: float = 0.6,
        trace: Trace | None = None,
    ) -> float | None:
        """Place the batch afresh and return what it costs, `None` if some gang finds no place.

        Args:
            rng: draws noise; without it the best place is taken in turn.
            noise: temperature of the scores.
            order_noise: standard deviation of the turns.
            trace: is filled.
        """
        self.builder.back(0)
        order = self.order(rng, order_noise)

        def score(decision: Decision, builder: Builder) -> FloatArray:
            found = self.scores(decision)
            if not np.isfinite(found).all():
                raise FloatingPointError("the network's scores are not finite")
            if rng is not None:
                found = found + noise * rng.gumbel(size=len(found))
            if trace is not None:
                if len(builder.done) == len(self.batch.pinned):
                    trace.decisions.clear()  # a placement that found no end is forgotten
                    trace.taken.clear()
                trace.decisions.append(decision)
                trace.taken.append(int(np.argmax(found)))
            return found

        return self.builder.total() if run(self.builder, order, score, until=self.until) else None
