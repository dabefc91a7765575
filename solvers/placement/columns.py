"""Column generation: a bound by patterns of nodes, and the patterns that may be in a best plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ..run import Run
from .options import Kinship, Options, families, options_of
from .prepare import Batch, Rows
from .pricing import Pricing

_EACH = 200
"""Patterns that a search adds."""
_STEPS = 20_000_000
_FEW = 50_000
"""Sets that a search looks at, first and when nothing else helps."""
_PULL = 0.7
_EPS = 1e-9


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is on a node of a kind: options, ascending; and their cost."""

    kind: int
    options: tuple[int, ...]
    cost: float


class _Prices(NamedTuple):
    """What each family pays for a worker and for a server, and each kind of node, never more than 0."""

    worker: FloatArray
    server: FloatArray
    node: FloatArray


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
        same = merged(batch)
        self.nodes = np.bincount(same[batch.kind], minlength=len(batch.sample))
        self.kinds = [q for q in sorted(set(same.tolist())) if batch.allowed[:, q].any()]
        self.kind = same[batch.kind]
        self.options: dict[int, Options] = {q: options_of(batch, self.kin, q) for q in self.kinds}
        self.pricing = {q: Pricing(batch, self.kin, self.options[q]) for q in self.kinds}
        self.patterns: list[Pattern] = []
        self.known: set[tuple[int, tuple[int, ...]]] = set()
        self.bound = -np.inf
        self.best: _Prices | None = None
        self.started = 0
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
        """Generate columns until none improves; return whether that was reached.

        Prices are drawn towards those of the best bound (Wentges 1997), which jump less; the searches at first look
        at few sets, and only when those find nothing at all of them.
        """
        steps, pull = _FEW, _PULL
        while not self.run.stopped:
            self.lp.run()
            now = self._prices()
            prices = now
            if pull and self.best is not None:
                prices = _Prices(*(pull * x + (1 - pull) * y for x, y in zip(self.best, now, strict=True)))
            added, exact, low = 0, True, prices.node.copy()
            for i, q in enumerate(self.kinds):
                reduced, cost, chosen, complete = self.pricing[q].search(
                    self.run, prices.worker, prices.server, float(prices.node[i]) - _EPS, _EACH, True, steps
                )
                exact &= complete
                if len(reduced):
                    low[i] = min(low[i], float(reduced[0]))
                for c, row in zip(cost.tolist(), chosen.tolist(), strict=True):
                    added += self.add(q, tuple(sorted(x for x in row if x >= 0)), c)
            if exact:
                self._bound(_Prices(prices.worker, prices.server, low))
            if not added and pull:
                pull = 0.0
            elif not added and not exact and steps < _STEPS:
                steps = _STEPS
            elif not added:
                return exact
            elif pull == 0.0 and steps == _FEW:
                pull = _PULL
        return False

    def _prices(self) -> _Prices:
        dual, f = np.array(self.lp.getSolution().row_dual), len(self.need)
        return _Prices(dual[:f], dual[f : 2 * f], np.minimum(dual[2 * f :], 0.0))

    def _bound(self, prices: _Prices) -> None:
        """Raise the bound by Lagrange's: at these prices no pattern costs less than its jobs and its node pay."""
        total = float(prices.worker @ self.need + prices.server @ self.also)
        for f, j in enumerate(self.kin.lead):
            value, job = self.batch.jobs[j].value, self.batch.jobs[j]
            if value is not None:  # whoever would rather be left out is
                pays = prices.worker[f] * job.workers[0] + prices.server[f] * job.servers
                total += len(self.kin.members[f]) * min(0.0, value - float(pays))
        total += float(prices.node @ self.nodes[self.kinds]) - _EPS * (1 + abs(total))
        if total > self.bound:
            self.bound, self.best = total, prices
            self.run.raise_bound(total, "columns")

    def start(self, rows: list[Rows]) -> None:
        """Add the columns of a plan."""
        at: dict[int, list[tuple[int, int, int]]] = {}
        family = {j: f for f, jobs in enumerate(self.kin.members) for j in jobs}
        for j, row in enumerate(rows):
            for n, (w, p) in row.items():
                at.setdefault(n, []).append((family[j], w, p))
        for n, tasks in at.items():
            q = int(self.kind[n])
            opts = self.options[q]
            key = {
                k: i
                for i, k in enumerate(
                    zip(*(x.tolist() for x in (opts.family, opts.workers, opts.servers)), strict=True)
                )
            }
            chosen = tuple(sorted(key[task] for task in tasks))
            self.add(q, chosen, opts.pattern_cost(chosen, self.batch.problem.speeds.host))
        self.started = len(self.patterns)

    def nearest(self, most: int) -> list[Pattern]:
        """Return the columns of least reduced cost, and those of the start and of the solution."""
        self.lp.run()
        solution = self.lp.getSolution()
        value, reduced = np.array(solution.col_value)[self.first :], np.array(solution.col_dual)[self.first :]
        kept = {*range(self.started), *np.flatnonzero(value > _EPS).tolist()}
        kept |= set(np.argsort(reduced, kind="stable")[:most].tolist())
        return [self.patterns[i] for i in sorted(kept)]

    def within(self, gap: float, most: int) -> list[Pattern] | None:
        """Return every pattern with a reduced cost below `gap`, `None` if they are more than `most`."""
        assert self.best is not None
        worker, server, node = self.best
        found: list[Pattern] = []
        for i, q in enumerate(self.kinds):
            _, cost, chosen, complete = self.pricing[q].search(
                self.run, worker, server, float(node[i]) + gap, most, False, _STEPS
            )
            if not complete or len(found) + len(cost) > most:
                return None
            for c, row in zip(cost.tolist(), chosen.tolist(), strict=True):
                found.append(Pattern(q, tuple(sorted(x for x in row if x >= 0)), c))
        return found


def merged(batch: Batch) -> IntArray:
    """Return for each kind the first one that is no different to these jobs: labels that nobody asks for."""
    fleet = batch.problem.fleet
    seen: dict[object, int] = {}
    found = []
    for q, node in enumerate(batch.sample.tolist()):
        has = tuple(float(x[node]) for x in (fleet.gpus, fleet.cpu, fleet.memory, fleet.link))
        key = has, batch.allowed[:, q].tobytes(), batch.alone[:, q].tobytes(), batch.room[:, q].tobytes()
        found.append(seen.setdefault(key, q))
    return np.array(found)
