"""Column generation: a bound by patterns of nodes, and the patterns that may be in a best plan.

Parts of a gang of d workers are a path from 0 to d with a step of a for a part of a workers: then no more of large
parts is used than a gang can be cut into, which the number of workers alone allows (8 / 7 parts of 7 are 8 workers).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import highspy
import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ..highs import new_highs
from ..run import Run
from .options import Kinship, Options, Pricing, families, options_of
from .prepare import Indices, PreparedBatch, Rows


class DualPrices(NamedTuple):
    """What each part pays, (parts,), each server of a family, (f,), and each kind of node, never more than 0."""

    part: FloatArray
    server: FloatArray
    node: FloatArray


class Round(NamedTuple):
    """A round of column generation.

    Attributes:
        value: of the master problem, before its columns are added.
        prices: at which the searches looked.
        added: columns that were added.
        done: whether no pattern improves the master problem, which is proved.
    """

    value: float
    prices: DualPrices
    added: int
    done: bool


class Master:
    """Minimise sum of cost_t x_t: the patterns x_t hold the parts of all gangs, on no more nodes than there are.

    Servers of a gang that are on none of its workers' nodes are anywhere, at no cost. A family that may be left out
    pays its value. `high`: what a gang that is left out costs where that is not allowed.
    """

    def __init__(self, batch: PreparedBatch, kin: Kinship, nodes: Indices, high: float) -> None:
        self.batch, self.kin, self.nodes = batch, kin, nodes
        self.lp = new_highs(output_flag=False, threads=1)
        self.degree = [batch.jobs[j].workers[0] for j in kin.lead]
        self.most = [min(d, int(batch.room[j].max())) for d, j in zip(self.degree, kin.lead, strict=True)]
        self.count = [len(jobs) for jobs in kin.members]
        self.servers = np.array([float(batch.jobs[j].servers) for j in kin.lead])
        self.values = [batch.jobs[j].value for j in kin.lead]
        # the row of part a of family f is first[f] + a - 1
        self.first = np.concatenate([[0], np.cumsum(self.most)]).astype(np.int64)
        self.parts = int(self.first[-1])
        self._rows(high)
        self.columns = self.lp.getNumCol()

    def _rows(self, high: float) -> None:
        lp, inf = self.lp, highspy.kHighsInf
        for _ in range(self.parts):
            lp.addRow(0.0, 0.0, 0, [], [])
        for count in self.servers:
            lp.addRow(-inf, count, 0, [], [])
        for count in self.nodes:
            lp.addRow(-inf, float(count), 0, [], [])
        for f, d in enumerate(self.degree):
            start = lp.getNumRow()  # of the stations 0 to d - 1 of the path
            for r in range(d):
                amount = float(self.count[f]) if r == 0 else 0.0
                lp.addRow(amount, amount, 0, [], [])
            for r in range(d):
                for a in range(1, min(self.most[f], d - r) + 1):
                    rows, amounts = [int(self.first[f]) + a - 1, start + r], [-1.0, 1.0]
                    if r + a < d:
                        rows.append(start + r + a)
                        amounts.append(-1.0)
                    lp.addCol(0.0, 0.0, inf, len(rows), rows, amounts)
            value = self.values[f]
            lp.addCol(high if value is None else value, 0.0, inf, 1, [start], [1.0])

    def add(self, kind: int, options: Options, chosen: tuple[int, ...], cost: float) -> None:
        """Add a pattern of nodes of `kind`, the position of that kind."""
        rows: dict[int, float] = {self.parts + len(self.servers) + kind: 1.0}
        for x in chosen:
            f = int(options.family[x])
            for row, amount in ((int(self.first[f] + options.workers[x]) - 1, 1), (self.parts + f, options.servers[x])):
                if amount:
                    rows[row] = rows.get(row, 0.0) + float(amount)
        self.lp.addCol(cost, 0.0, highspy.kHighsInf, len(rows), list(rows), list(rows.values()))

    def pays(self, options: Options, prices: DualPrices) -> FloatArray:
        """Return what each option pays."""
        part = prices.part[self.first[options.family] + options.workers - 1]
        return np.asarray(part + prices.server[options.family] * options.servers)

    def run(self) -> DualPrices:
        """Solve and return the prices."""
        self.lp.run()
        dual = np.array(self.lp.getSolution().row_dual)
        p, s = self.parts, self.parts + len(self.servers)
        return DualPrices(dual[:p], np.minimum(dual[p:s], 0.0), np.minimum(dual[s : s + len(self.nodes)], 0.0))

    def bound(self, prices: DualPrices) -> float:
        """Return Lagrange's bound if no pattern costs less than what it is paid less `prices.node`."""
        total = float(prices.server @ self.servers + prices.node @ self.nodes)
        return total + sum(count * pays for count, pays in zip(self.count, self.gangs(prices), strict=True))

    def gangs(self, prices: DualPrices) -> list[float]:
        """Return what a gang of each family pays: its cheapest parts, or its value if that is less."""
        found = []
        for f, d in enumerate(self.degree):
            pays = prices.part[self.first[f] : self.first[f + 1]]
            best = [0.0]
            for r in range(1, d + 1):
                parts = range(1, min(r, self.most[f]) + 1)
                best.append(min((best[r - a] + float(pays[a - 1]) for a in parts), default=np.inf))
            value = self.values[f]
            found.append(best[d] if value is None else min(value, best[d]))
        return found

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Return the values and the reduced costs of the patterns."""
        found = self.lp.getSolution()
        return np.array(found.col_value)[self.columns :], np.array(found.col_dual)[self.columns :]


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


class Columns:
    """The master problem and its columns.

    Attributes:
        batch: the problem, with costs in its own unit.
        bound: the best bound so far, constant costs included, in that unit.
    """

    def __init__(self, run: Run, batch: PreparedBatch) -> None:
        self.run, self.batch = run, _rescaled(batch)
        batch = self.batch
        self.kin: Kinship = families(batch)
        same = merged_kinds(batch)
        self.nodes = np.bincount(same[batch.kind], minlength=len(batch.sample))
        self.kinds = [q for q in sorted(set(same.tolist())) if batch.allowed[:, q].any()]
        self.kind = same[batch.kind]
        self.options: dict[int, Options] = {q: options_of(batch, self.kin, q) for q in self.kinds}
        many = np.array([len(jobs) for jobs in self.kin.members])
        self.pricing = {q: Pricing(batch, many, self.kin.apart, self.options[q]) for q in self.kinds}
        self.patterns: list[Pattern] = []
        self.known: set[tuple[int, tuple[int, ...]]] = set()
        self.bound = -np.inf
        self.best: DualPrices | None = None
        self.started = 0
        high = 10.0 * (1.0 + float(self.objective or batch.weight.sum() * 10))
        self.master = Master(batch, self.kin, self.nodes[self.kinds], high)

    @property
    def objective(self) -> float | None:
        """That of the best plan so far, in the unit of the columns."""
        return None if self.run.objective is None else self.run.objective * self.batch.unit

    def raise_bound(self, value: float, by: str) -> None:
        """Tell the run of a bound in the unit of the columns."""
        self.run.raise_bound(value / self.batch.unit, by)

    def add(self, kind: int, options: tuple[int, ...], cost: float) -> bool:
        """Add a column unless it is there."""
        key = kind, options
        if key in self.known:
            return False
        self.known.add(key)
        self.master.add(self.kinds.index(kind), self.options[kind], options, cost)
        self.patterns.append(Pattern(kind, options, cost))
        return True

    def solve(self) -> bool:
        """Generate columns until none improves; return whether that was reached."""
        done = False
        for turn in self.rounds():
            done = turn.done
        return done

    def rounds(self) -> Iterator[Round]:
        """Generate columns until none improves, round by round.

        Prices are drawn towards those of the best bound (Wentges 1997), which jump less; the searches at first look
        at few sets, and only when those find nothing at all of them.
        """
        steps, pull = _FEW, _PULL
        while not self.run.stopped:
            prices = self.master.run()
            value = float(self.master.lp.getObjectiveValue())
            if pull and self.best is not None:
                prices = DualPrices(*(pull * x + (1 - pull) * y for x, y in zip(self.best, prices, strict=True)))
            added, exact, low = 0, True, prices.node.copy()
            for i, q in enumerate(self.kinds):
                reduced, cost, chosen, complete = self._search(q, prices, float(prices.node[i]) - _EPS, _EACH, steps)
                exact &= complete
                if len(reduced):
                    low[i] = min(low[i], float(reduced[0]))
                for c, row in zip(cost.tolist(), chosen.tolist(), strict=True):
                    added += self.add(q, tuple(sorted(x for x in row if x >= 0)), c)
            if exact:
                self._bound(prices._replace(node=low))
            over = not (added or pull) and (exact or steps >= _STEPS)
            yield Round(value, prices, added, over and exact)
            if over:
                return
            if not added and pull:
                pull = 0.0
            elif not added:
                steps = _STEPS
            elif pull == 0.0 and steps == _FEW:
                pull = _PULL

    def _search(
        self, q: int, prices: DualPrices, limit: float, most: int, steps: int, best: bool = True
    ) -> tuple[FloatArray, FloatArray, IntArray, bool]:
        pays = self.master.pays(self.options[q], prices)
        return self.pricing[q].search(self.run, pays, limit, most, best, steps)

    def _bound(self, prices: DualPrices) -> None:
        """Raise the bound by Lagrange's: at these prices no pattern costs less than its parts and its node pay."""
        total = self.master.bound(prices)
        total -= _EPS * (1 + abs(total))
        if total > self.bound:
            self.bound, self.best = total, prices
            self.raise_bound(total, "columns")

    def start(self, rows: list[Rows]) -> None:
        """Add the columns of a plan."""
        for q, chosen in self.held(rows):
            self.add(q, chosen, self.options[q].pattern_cost(chosen, self.batch.host))
        self.started = len(self.patterns)

    def held(self, rows: list[Rows]) -> Counter[tuple[int, tuple[int, ...]]]:
        """Return on how many nodes of a plan each kind and options are."""
        at: dict[int, list[tuple[int, int, int]]] = {}
        family = {j: f for f, jobs in enumerate(self.kin.members) for j in jobs}
        for j, row in enumerate(rows):
            for n, (w, p) in row.items():
                if w:
                    at.setdefault(n, []).append((family[j], w, p))
        tasks = {
            q: list(zip(opts.family.tolist(), opts.workers.tolist(), opts.servers.tolist(), strict=True))
            for q, opts in self.options.items()
        }
        key = {q: {task: i for i, task in enumerate(rows)} for q, rows in tasks.items()}
        kinds = {n: int(self.kind[n]) for n in at}
        return Counter((q, tuple(sorted(key[q][task] for task in at[n]))) for n, q in kinds.items())

    def nearest(self, most: int) -> list[Pattern]:
        """Return the columns of least reduced cost, and those of the start and of the solution."""
        self.master.run()
        value, reduced = self.master.solution()
        kept = {*range(self.started), *np.flatnonzero(value > _EPS).tolist()}
        kept |= set(np.argsort(reduced, kind="stable")[:most].tolist())
        return [self.patterns[i] for i in sorted(kept)]

    def within(self, gap: float, most: int) -> list[Pattern] | None:
        """Return every pattern with a reduced cost below `gap`, `None` if they are more than `most`."""
        assert self.best is not None
        found: list[Pattern] = []
        for i, q in enumerate(self.kinds):
            _, cost, chosen, complete = self._search(
                q, self.best, float(self.best.node[i]) + gap, most, _STEPS, best=False
            )
            if not complete or len(found) + len(cost) > most:
                return None
            for c, row in zip(cost.tolist(), chosen.tolist(), strict=True):
                found.append(Pattern(q, tuple(sorted(x for x in row if x >= 0)), c))
        return found


def _rescaled(batch: PreparedBatch) -> PreparedBatch:
    """Return the batch with costs in its own unit, `PreparedBatch.unit`, which it keeps."""
    unit = batch.unit
    if unit == 1:
        return batch
    found = copy(batch)  # which has looked its unit up
    found.jobs = tuple(
        replace(job, weight=job.weight * unit, value=None if job.value is None else job.value * unit)
        for job in batch.jobs
    )
    found.problem, found.weight = replace(batch.problem, jobs=found.jobs), batch.weight * unit
    return found


def merged_kinds(batch: PreparedBatch) -> IntArray:
    """Return for each kind the first one that is no different to these jobs: labels that nobody asks for."""
    fleet = batch.problem.fleet
    seen: dict[object, int] = {}
    found = []
    for q, node in enumerate(batch.sample.tolist()):
        has = tuple(float(x[node]) for x in (fleet.gpus, fleet.cpu, fleet.memory, fleet.link))
        key = has, batch.allowed[:, q].tobytes(), batch.alone[:, q].tobytes(), batch.room[:, q].tobytes()
        found.append(seen.setdefault(key, q))
    return np.array(found)
