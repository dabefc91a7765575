"""The linear master problem of column generation: patterns, and in what parts gangs may be.

Parts of a gang of d workers are a path from 0 to d with a step of a for a part of a workers: then no more of large
parts is used than a gang can be cut into, which the number of workers alone allows (8 / 7 parts of 7 are 8 workers).
"""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np

from gangplan.instances.arrays import FloatArray

from .options import Kinship, Options
from .prepare import Batch, Indices


class Prices(NamedTuple):
    """What each part pays, (parts,), each server of a family, (f,), and each kind of node, never more than 0."""

    part: FloatArray
    server: FloatArray
    node: FloatArray


class Master:
    """Minimise sum of cost_t x_t: the patterns x_t hold the parts of all gangs, on no more nodes than there are.

    Servers of a gang that are on none of its workers' nodes are anywhere, at no cost. A family that may be left out
    pays its value.

    Args:
        batch: the problem.
        kin: its families.
        nodes: how many of each kind.
        high: what a gang that is left out costs where that is not allowed.
    """

    def __init__(self, batch: Batch, kin: Kinship, nodes: Indices, high: float) -> None:
        self.batch, self.kin, self.nodes = batch, kin, nodes
        self.lp = highspy.Highs()
        self.lp.setOptionValue("output_flag", False)
        self.lp.setOptionValue("threads", 1)
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

    def pays(self, options: Options, prices: Prices) -> FloatArray:
        """Return what each option pays."""
        part = prices.part[self.first[options.family] + options.workers - 1]
        return np.asarray(part + prices.server[options.family] * options.servers)

    def run(self) -> Prices:
        """Solve and return the prices."""
        self.lp.run()
        dual = np.array(self.lp.getSolution().row_dual)
        p, s = self.parts, self.parts + len(self.servers)
        return Prices(dual[:p], np.minimum(dual[p:s], 0.0), np.minimum(dual[s : s + len(self.nodes)], 0.0))

    def bound(self, prices: Prices) -> float:
        """Return Lagrange's bound if no pattern costs less than what it is paid less `prices.node`."""
        total = float(prices.server @ self.servers + prices.node @ self.nodes)
        for f, d in enumerate(self.degree):
            pays = prices.part[self.first[f] : self.first[f + 1]]
            best = [0.0]
            for r in range(1, d + 1):
                parts = range(1, min(r, self.most[f]) + 1)
                best.append(min((best[r - a] + float(pays[a - 1]) for a in parts), default=np.inf))
            value = self.values[f]
            total += self.count[f] * (best[d] if value is None else min(value, best[d]))
        return total

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Return the values and the reduced costs of the patterns."""
        found = self.lp.getSolution()
        return np.array(found.col_value)[self.columns :], np.array(found.col_dual)[self.columns :]
