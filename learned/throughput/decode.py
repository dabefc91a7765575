"""Scores of groups to a pipeline: orders, cut by the recurrence, polished; always feasible, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gangplan.instances import PartitionPlan, PartitionProblem
from gangplan.instances.arrays import FloatArray
from gangplan.solvers.partition.throughput.bounds import counting_bound, impossible, load_ceiling
from gangplan.solvers.partition.throughput.cuts import Cuts, Stages
from gangplan.solvers.partition.throughput.lattice import linear_extension
from gangplan.solvers.partition.throughput.methods import Reduced
from gangplan.solvers.partition.throughput.orders import Ints, Orders
from gangplan.solvers.partition.throughput.pipeline import few_mixes
from gangplan.solvers.partition.throughput.polish import Polish, stage_of
from gangplan.solvers.partition.throughput.quotient import Quotient

BOTH_ENDS = 800
"""Groups up to which an order is made from both of its ends: of more, one takes long enough."""
_WIDEN = 3.0


@dataclass(frozen=True, slots=True)
class Draft:
    """A pipeline of groups.

    Attributes:
        load: of its busiest device, seconds.
        stages: in order, each a type of device and groups.
    """

    load: float
    stages: Stages


class Decoder:
    """Turns scores of one problem's groups into plans.

    A score is added to a group's place in PipeDream's order, as a share of the whole order: scores that are all equal
    give that order, and so a plan that is no worse than PipeDream's.

    Args:
        q: a contiguous quotient that has a plan as far as is plain to see; `decoder` makes one from a problem.
    """

    def __init__(self, q: Quotient) -> None:
        self.q = q
        self.orders, self.cuts, self.polish = Orders(q), Cuts(q), Polish(q)
        self.order: Ints = np.array(linear_extension(q), dtype=np.int64)
        self.place = np.empty(q.n_groups)
        self.place[self.order] = np.arange(q.n_groups) / q.n_groups
        self.floor = counting_bound(q)
        self.ceiling = load_ceiling(q) * (1 + 1e-6)

    @cached_property
    def base(self) -> Draft | None:
        """PipeDream's plan, None if its order cannot be cut."""
        return self.cut(self.order[None, :])

    def cut(self, orders: Ints, cap: float | None = None) -> Draft | None:
        """Return the best plan below `cap` along some orders, by thresholds that widen: low ones are fast."""
        most = self.ceiling if cap is None else cap
        likely = self.floor if "base" not in self.__dict__ or self.base is None else self.base.load
        threshold = min(most, 1.02 * likely)
        while True:
            found = self.cuts.best(orders, threshold)
            if found is not None:
                return Draft(*found)
            if threshold >= most:
                return None
            threshold = min(most, self.floor + _WIDEN * max(threshold - self.floor, 1e-3 * most))

    def decode(self, scores: FloatArray) -> Draft | None:
        """Return the plan of one vector of scores, (G,), its orders cut and polished."""
        if not scores.any():
            return None if self.base is None else self.polished(self.base)
        at = self.place + scores
        ends = [self.orders.forward(at)] + ([self.orders.backward(at)] if self.q.n_groups <= BOTH_ENDS else [])
        found = self.cut(np.stack(ends))
        return None if found is None else self.polished(found)

    def polished(self, draft: Draft) -> Draft:
        """Return a plan that is no worse by single moves."""
        load, stages = self.polish.better(draft.stages)
        return Draft(load, [(t, groups) for t, groups in stages if len(groups)]) if load < draft.load else draft

    def sample(self, scores: FloatArray) -> Draft | None:
        """Return the best plan of several vectors of scores, (K, G), put together from the plans of each."""
        drafts = [x for row in scores if (x := self.decode(row)) is not None]
        return self.join(drafts)

    def join(self, drafts: list[Draft]) -> Draft | None:
        """Return the best of some plans, or what the recurrence makes of all of their orders, polished."""
        if not drafts:
            return None
        best = min(drafts, key=lambda x: x.load)
        lines = np.unique([self.line(x) for x in drafts], axis=0)
        if len(lines) > 1:
            found = self.cut(lines, best.load)
            if found is not None:
                best = self.polished(found)
        return best

    def line(self, draft: Draft) -> Ints:
        """Return an order along which the plan's stages come one after the other, int64 (G,)."""
        return self.orders.forward(stage_of(draft.stages, self.q.n_groups) + self.place / 2)

    def plan(self, draft: Draft) -> PartitionPlan:
        """Return the plan of ops."""
        return self.q.plan((t, groups.tolist()) for t, groups in draft.stages)


def decoder(problem: PartitionProblem) -> Decoder | None:
    """Return the decoder of a problem of any variant, None if it is plain that there is no plan."""
    q = Reduced(problem).pipeline
    return None if impossible(q) is not None else Decoder(few_mixes(q))
