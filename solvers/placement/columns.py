"""Column generation: the least that patterns for all nodes cost, a bound, and the patterns that may be in a best plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run
from .options import Kinship, Options, families, options_of
from .prepare import Batch
from .pricing import Pricing

_EACH = 200
"""Patterns that a search adds."""
_STEPS = 20_000_000
_EPS = 1e-9


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is on a node of a kind: options, ascending; and their cost."""

    kind: int
    options: tuple[int, ...]
    cost: float


class Columns:
    """The master problem and its columns.

    Minimise sum of cost_t x_t, so that patterns x_t hold all workers and servers of each family, and are no more than
    the nodes of each kind. A family that may be left out pays its value.

    Attributes:
        bound: the best bound so far, constant costs included.
        patterns: the columns.
    """

    def __init__(self, run: Run, batch: Batch) -> None:
        self.run, self.batch = run, batch
        self.kin: Kinship = families(batch)
        self.nodes = np.bincount(batch.kind, minlength=len(batch.sample))
        self.kinds = [q for q in range(len(batch.sample)) if batch.allowed[:, q].any()]
        self.options: dict[int, Options] = {q: options_of(batch, self.kin, q) for q in self.kinds}
        self.pricing = {q: Pricing(batch, self.kin, self.options[q]) for q in self.kinds}
        self.patterns: list[Pattern] = []
        self.known: set[tuple[int, tuple[int, ...]]] = set()
        self.bound = -np.inf
        self.worker = np.zeros(len(self.kin.members))
        self.server = np.zeros(len(self.kin.members))
        self.node = dict.fromkeys(self.kinds, 0.0)
        self.best_prices: tuple[FloatArray, FloatArray, dict[int, float]] | None = None
        self._master()

    def _master(self) -> None:
        batch, lead = self.batch, self.kin.lead
        self.lp = highspy.Highs()
        self.lp.setOptionValue("output_flag", False)
        self.lp.setOptionValue("threads", 1)
        inf = highspy.kHighsInf
        self.need, self.also = [], []
        for f, j in enumerate(lead):
            count = len(self.kin.members[f])
            self.need.append(float(count * batch.jobs[j].workers[0]))
            self.also.append(float(count * batch.jobs[j].servers))
        for amount in (*self.need, *self.also):
            self.lp.addRow(amount, amount, 0, [], [])
        for q in self.kinds:
            self.lp.addRow(-inf, float(self.nodes[q]), 0, [], [])
        high = 10.0 * (1.0 + float(self.run.objective or batch.weight.sum() * 10))
        families_ = len(lead)
        for f, j in enumerate(lead):
            value = batch.jobs[j].value
            degree, servers = batch.jobs[j].workers[0], batch.jobs[j].servers
            rows, amounts = [f], [float(degree)]
            if servers:
                rows.append(families_ + f)
                amounts.append(float(servers))
            self.lp.addCol(high if value is None else value, 0.0, inf, len(rows), rows, amounts)
            if servers and value is None:
                self.lp.addCol(high, 0.0, inf, 1, [families_ + f], [1.0])
                self.lp.addCol(high, 0.0, inf, 1, [f], [1.0])
        self.first = self.lp.getNumCol()

    def add(self, kind: int, options: tuple[int, ...], cost: float) -> bool:
        """Add a column unless it is there."""
        key = kind, options
        if key in self.known:
            return False
        self.known.add(key)
        opts, f = self.options[kind], len(self.need)
        rows: dict[int, float] = {2 * f + self.kinds.index(kind): 1.0}
        for x in options:
            family = int(opts.family[x])
            for row, amount in ((family, int(opts.workers[x])), (f + family, int(opts.servers[x]))):
                if amount:
                    rows[row] = rows.get(row, 0.0) + amount
        self.lp.addCol(cost, 0.0, highspy.kHighsInf, len(rows), list(rows), list(rows.values()))
        self.patterns.append(Pattern(kind, options, cost))
        return True

    def solve(self) -> bool:
        """Generate columns until none improves; return whether that was reached."""
        while not self.run.stopped:
            self.lp.run()
            solution = self.lp.getSolution()
            value, dual = self.lp.getInfo().objective_function_value, np.array(solution.row_dual)
            f = len(self.need)
            worker, server = dual[:f], dual[f : 2 * f]
            node = {q: float(dual[2 * f + i]) for i, q in enumerate(self.kinds)}
            added, least, exact = 0, {}, True
            for q in self.kinds:
                reduced, cost, chosen, complete = self.pricing[q].search(
                    worker, server, node[q] - _EPS, _EACH, True, _STEPS
                )
                exact &= complete
                least[q] = min(0.0, float(reduced[0]) - node[q]) if len(reduced) else 0.0
                for c, row in zip(cost.tolist(), chosen.tolist(), strict=True):
                    added += self.add(q, tuple(sorted(x for x in row if x >= 0)), c)
            if exact:
                bound = value + sum(float(self.nodes[q]) * x for q, x in least.items()) - _EPS * float(self.nodes.sum())
                if bound > self.bound:
                    self.bound = bound
                    self.best_prices = worker, server, {q: node[q] + least[q] for q in self.kinds}
                    self.run.raise_bound(bound, "columns")
            if not added or not exact:
                return exact
        return False

    def within(self, gap: float, most: int) -> list[Pattern] | None:
        """Return every pattern with a reduced cost below `gap`, `None` if they are more than `most`."""
        assert self.best_prices is not None
        worker, server, node = self.best_prices
        found = []
        for q in self.kinds:
            reduced, cost, chosen, complete = self.pricing[q].search(
                worker, server, node[q] + gap, most, False, _STEPS
            )
            if not complete or len(found) + len(cost) > most:
                return None
            for c, row in zip(cost.tolist(), chosen.tolist(), strict=True):
                found.append(Pattern(q, tuple(sorted(x for x in row if x >= 0)), c))
        return found


def values(lp: Any) -> FloatArray:
    """Return the columns' values."""
    return np.array(lp.getSolution().col_value)
