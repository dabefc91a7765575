"""The choice among patterns in CP-SAT: how many nodes get each, and what the gangs that are split come to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from math import floor
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances.placement.rate import ring_bytes

from .columns import Columns, Pattern

UNITS = 1 << 26
"""What 1 of the goal becomes in integers; all costs are rounded down."""


class PatternModel:
    """Letters as in docs/placement.md: x[t] nodes have pattern t.

    It knows nothing of what is above the NICs, and of a split gang only what its nodes say: the least compute and
    synchronisation of any plan with these patterns, so its optimum is a bound on the goal of such plans.
    """

    def __init__(self, columns: Columns, patterns: Sequence[Pattern]) -> None:
        self.columns, self.patterns, self.batch = columns, patterns, columns.batch
        self.model = cp_model.CpModel()
        self.kin = columns.kin
        self.x = [self.model.new_int_var(0, self._most(t), "") for t in patterns]
        self.used: dict[int, Any] = {}
        self.cost: list[Any] = []
        self.uses: defaultdict[int, list[tuple[int, int, float]]] = defaultdict(list)
        self.gangs: list[int] = []
        constant: list[Any] = []
        for t, pattern in enumerate(patterns):
            opts = columns.options[pattern.kind]
            index = np.array(pattern.options, dtype=int)
            slower = opts.slower(pattern.options, self.batch.host)
            self.gangs.append(int(opts.split[index].sum()))
            whole = 0.0
            for x, extra in zip(pattern.options, slower.tolist(), strict=True):
                if opts.split[x]:
                    self.uses[int(opts.family[x])].append((t, x, extra))
                else:
                    whole += float(opts.cost(x, extra))
            constant.append(floor(whole * UNITS) * self.x[t])
        self._rows()
        self.quiet = self._quiet()
        for f in self.uses:
            self.cost.append(self._split(f))
        self.total = sum(constant) + sum(self.cost) + sum(self.left)
        self.model.minimize(self.total)

    def _most(self, pattern: Pattern) -> int:
        opts, master = self.columns.options[pattern.kind], self.columns.master
        most = int(self.columns.nodes[pattern.kind])
        for x in pattern.options:
            f = int(opts.family[x])
            most = min(most, master.count[f] * master.degree[f] // int(opts.workers[x]))
            if opts.servers[x]:
                most = min(most, int(master.servers[f]) // int(opts.servers[x]))
        return most

    def _rows(self) -> None:
        """(N) No more nodes than there are; (G) all workers of a gang, or none if it may be left out."""
        parts: defaultdict[int, defaultdict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
        servers: defaultdict[int, list[Any]] = defaultdict(list)
        nodes: defaultdict[int, list[Any]] = defaultdict(list)
        for t, pattern in enumerate(self.patterns):
            opts = self.columns.options[pattern.kind]
            nodes[pattern.kind].append(self.x[t])
            for x in pattern.options:
                f = int(opts.family[x])
                parts[f][int(opts.workers[x])].append(self.x[t])
                if opts.servers[x]:
                    servers[f].append(int(opts.servers[x]) * self.x[t])
        for q, xs in nodes.items():
            self.model.add(sum(xs) <= int(self.columns.nodes[q]))
        self.left: list[Any] = []
        self.away: dict[int, Any] = {}
        for f, j in enumerate(self.kin.lead):
            job, count = self.batch.jobs[j], len(self.kin.members[f])
            out: Any = 0
            if job.value is not None:
                out = self.model.new_int_var(0, count, "")
                self.left.append(floor(job.value * UNITS) * out)
            degree = job.workers[0]
            self.model.add(sum(a * sum(xs) for a, xs in parts[f].items()) + degree * out == count * degree)
            if job.servers:
                self.away[f] = job.servers - sum(servers[f]) - job.servers * out
                self.model.add(self.away[f] >= 0)

    def _quiet(self) -> dict[int, Any]:
        """(Q) Return for each gang how many nodes have its servers, and no other task of a split gang."""
        nodes = int(self.columns.nodes[self.columns.kinds].sum())
        quiet = {f: self.model.new_int_var(0, nodes, "") for f in self.uses if f in self.away}
        busy = sum(x for x, g in zip(self.x, self.gangs, strict=True) if g)
        self.model.add(sum(quiet.values()) + busy <= nodes)
        return quiet

    def _remote(self, f: int, each: int) -> Any:
        """Return what servers on no node of a worker cost: `each` for one alone on a NIC, twice that beside a gang.

        At a cost of k times `each` no more than k are on a quiet node, half of that on others.
        """
        most, nodes = self.batch.jobs[self.kin.lead[f]].servers, int(self.columns.nodes.sum())
        steps = [self.model.new_bool_var("") for _ in range(most)]
        for k, step in enumerate(steps):
            self.model.add(self.away[f] <= k * self.quiet[f] + k // 2 * nodes).only_enforce_if(~step)
        for low, high in pairwise(steps):
            self.model.add_implication(high, low)
        return each * sum(steps)

    def _use(self, t: int) -> Any:
        if t not in self.used:
            if self.patterns and self._most(self.patterns[t]) == 1:
                self.used[t] = self.x[t]
            else:
                self.used[t] = self.model.new_bool_var("")
                self.model.add(self.x[t] <= self._most(self.patterns[t]) * self.used[t])
        return self.used[t]

    def _split(self, f: int) -> Any:
        """(C) A gang that is split computes as its slowest node and synchronises as its busiest NIC: its cost."""
        batch, model, j = self.batch, self.model, self.kin.lead[f]
        job = batch.jobs[j]
        degree = job.workers[0]
        rate = float(batch.weight[j] * batch.best[j]) / degree * UNITS
        hidden = 1 - float(batch.overlap[j])
        compute, sync, means = [], [], []
        pairs: defaultdict[int, list[int]] = defaultdict(list)
        inside: list[tuple[float, int]] = []
        for t, x, extra in self.uses[f]:
            opts = self.columns.options[self.patterns[t].kind]
            compute.append((float(opts.compute[x]) * (1 + extra), t, int(opts.workers[x])))
            means.append(floor(float(opts.cost(x, extra, self.gangs[t])) * UNITS) * self.x[t])
            pairs[self.gangs[t]].append(t)
            if job.collective == "hierarchical":
                inside.append((float(opts.fixed[x]), t))
            else:
                sync.append((max(float(opts.fixed[x]), float(opts.nic[x]) * self.gangs[t]), t))
        c = self._levels([(rate * v, t, a) for v, t, a in compute], degree)
        s: Any = self._levels([(rate * v, t, 0) for v, t in sync], degree) if sync else 0
        if job.collective == "hierarchical":
            s = self._levels([(rate * v, t, 0) for v, t in inside], degree)
            s += self._phases(pairs, degree, rate, float(batch.gradient[j]) / batch.bandwidth[0])
        cost = model.new_int_var(0, 1 << 44, "")
        model.add(cost >= c)
        parts = floor(hidden * 1024)
        model.add(1024 * cost >= parts * c + 1024 * s)
        if f in self.quiet:
            each = rate * degree * float(batch.gradient[j]) / job.servers / batch.bandwidth[0]
            model.add(1024 * cost >= parts * c + 1024 * self._remote(f, floor(each)))
        model.add(cost >= sum(means))
        return cost

    def _levels(self, values: list[tuple[float, int, int]], degree: int) -> Any:
        """Return the largest value of a pattern used: a ladder of literals, each implied by those above it.

        A step of the ladder is at least the share of the gang's workers on the nodes that reach it.
        """
        steps = sorted({floor(v) for v, _, _ in values})
        total: Any = 0
        literals: list[Any] = []
        before = 0
        for step in steps:
            if step <= before and literals:
                continue
            literal = self.model.new_bool_var("")
            literals.append((step, literal))
            total += (step - before) * literal
            before = step
        for (_, low), (_, high) in pairwise(literals):
            self.model.add_implication(high, low)
        place = {step: i for i, (step, _) in enumerate(literals)}
        share: list[list[Any]] = [[] for _ in literals]
        for v, t, a in values:
            i = place[floor(v)]
            self.model.add_implication(self._use(t), literals[i][1])
            if a:
                share[i].append(a * self.x[t])
        above: list[Any] = []
        for i in range(len(literals) - 1, -1, -1):
            above = above + share[i]
            if above and len(literals) <= 40:
                self.model.add(sum(above) <= degree * literals[i][1])
        return total

    def _phases(self, pairs: dict[int, list[int]], degree: int, rate: float, nic: float) -> Any:
        """Return the least of the phases among n nodes: a ring of n at the share of the busiest NIC."""
        model = self.model
        nodes = sum(self.x[t] for ts in pairs.values() for t in ts)
        most = min(degree, int(self.columns.nodes.sum()))
        busy = {g: model.new_bool_var("") for g in pairs}
        for g, ts in pairs.items():
            for t in ts:
                model.add_implication(self._use(t), busy[g])
        cost = model.new_int_var(0, 1 << 44, "")
        for n in range(2, most + 1):
            reached = model.new_bool_var("")
            model.add(nodes <= n - 1).only_enforce_if(~reached)
            for g, x in busy.items():
                model.add(cost >= floor(rate * ring_bytes(n, 1.0) * nic * g)).only_enforce_if(reached, x)
        return cost
