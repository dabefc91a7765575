"""The choice among patterns in CP-SAT: how many nodes get each, and what the gangs that are split come to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import floor
from typing import TYPE_CHECKING, Any, NamedTuple

from ortools.sat.python import cp_model

from gangplan.instances.placement.rate import ring_bytes

if TYPE_CHECKING:
    from .patterns import NodePatterns, Pattern

UNITS = 1 << 26
"""What 1 of the goal becomes in integers, for costs of about 1; all costs are rounded down."""
_PARTS = 1 << 10
"""Parts of 1 in which the compute that hides no synchronisation counts, rounded down."""
_MOST = 1 << 44
"""No cost is more."""


class _Use(NamedTuple):
    """A part of a split gang in a pattern: which pattern, the seconds of its compute and synchronisation, its cost."""

    pattern: int
    compute: float
    sync: float
    cost: float


class PatternModel:
    """Letters as in docs/placement.md: x[t] nodes have pattern t.

    It knows nothing of what is above the NICs, and of a split gang only what its nodes say: the least compute and
    synchronisation of any plan with these patterns, so its optimum is a bound on the goal of such plans.

    Attributes:
        x: how many nodes have each pattern.
        total: the goal, in parts of `units` of it.
    """

    def __init__(self, nodes: NodePatterns, patterns: Sequence[Pattern]) -> None:
        self._nodes, self.batch, self.model = nodes, nodes.batch, cp_model.CpModel()
        self.units = UNITS * self.batch.unit
        most = [self._most(pattern) for pattern in patterns]
        self.x = [self.model.new_int_var(0, count, "") for count in most]
        self._used = [x if count == 1 else self.model.new_bool_var("") for x, count in zip(self.x, most, strict=True)]
        for x, used, count in zip(self.x, self._used, most, strict=True):
            self.model.add(x <= count * used)
        self._gangs: list[int] = []
        self._uses: defaultdict[int, list[_Use]] = defaultdict(list)
        self._away: dict[int, Any] = {}
        costs = [floor(self._whole(t, pattern) * self.units) * self.x[t] for t, pattern in enumerate(patterns)]
        costs += self._rows(patterns)
        self._quiet = self._quiet_nodes()
        self.total = sum(costs) + sum(self._split(f) for f in self._uses)
        self.model.minimize(self.total)

    def _most(self, pattern: Pattern) -> int:
        options, nodes = self._nodes.options[pattern.kind], self._nodes
        most = int(nodes.nodes[pattern.kind])
        for x in pattern.options:
            f, servers = int(options.family[x]), int(options.servers[x])
            most = min(most, len(nodes.kin.members[f]) * nodes.degree[f] // int(options.workers[x]))
            most = min(most, self.batch.jobs[nodes.kin.lead[f]].servers // servers if servers else most)
        return most

    def _whole(self, t: int, pattern: Pattern) -> float:
        """Return what the gangs cost that are all in a pattern, and note the parts of others."""
        options, some = self._nodes.options[pattern.kind], list(pattern.options)
        self._gangs.append(int(options.split[some].sum()))
        slower = options.slower(pattern.options, self.batch.host)
        cost = options.cost(some, slower, self._gangs[t])
        for x, more, own in zip(some, slower.tolist(), cost.tolist(), strict=True):
            if options.split[x]:
                fixed, nic = float(options.fixed[x]), float(options.nic[x]) * self._gangs[t]
                sync = fixed if options.adds[x] else max(fixed, nic)  # hierarchical: see `_phases`
                use = _Use(t, float(options.compute[x]) * (1 + more), sync, own)
                self._uses[int(options.family[x])].append(use)
        return float(cost[~options.split[some]].sum())

    def _rows(self, patterns: Sequence[Pattern]) -> list[Any]:
        """(N) No more nodes than there are; (G) all workers of a gang, or none: return what leaving it out costs."""
        workers: defaultdict[int, list[Any]] = defaultdict(list)
        servers: defaultdict[int, list[Any]] = defaultdict(list)
        nodes: defaultdict[int, list[Any]] = defaultdict(list)
        left = []
        for pattern, x in zip(patterns, self.x, strict=True):
            options = self._nodes.options[pattern.kind]
            nodes[pattern.kind].append(x)
            for i in pattern.options:
                workers[int(options.family[i])].append(int(options.workers[i]) * x)
                servers[int(options.family[i])].append(int(options.servers[i]) * x)
        for q, xs in nodes.items():
            self.model.add(sum(xs) <= int(self._nodes.nodes[q]))
        for f, (jobs, degree) in enumerate(zip(self._nodes.kin.members, self._nodes.degree, strict=True)):
            job = self.batch.jobs[jobs[0]]
            out: Any = 0
            if job.value is not None:
                out = self.model.new_int_var(0, len(jobs), "")
                left.append(floor(job.value * self.units) * out)
            self.model.add(sum(workers[f]) + degree * out == len(jobs) * degree)
            if job.servers:
                self._away[f] = job.servers - sum(servers[f]) - job.servers * out
                self.model.add(self._away[f] >= 0)
        return left

    def _quiet_nodes(self) -> dict[int, Any]:
        """(Q) Return for each gang how many nodes have its servers, and no other task of a split gang."""
        count = int(self._nodes.nodes.sum())
        quiet = {f: self.model.new_int_var(0, count, "") for f in self._away if f in self._uses}
        busy = sum(x for x, gangs in zip(self.x, self._gangs, strict=True) if gangs)
        self.model.add(sum(quiet.values()) + busy <= count)
        return quiet

    def _remote(self, f: int, each: int) -> Any:
        """Return what servers on no node of a worker cost: `each` for one alone on a NIC, twice that beside a gang.

        At a cost of k times `each` no more than k are on a quiet node, half of that on others.
        """
        steps = [self.model.new_bool_var("") for _ in range(self.batch.jobs[self._nodes.kin.lead[f]].servers)]
        for k, step in enumerate(steps):
            most = k * self._quiet[f] + k // 2 * int(self._nodes.nodes.sum())
            self.model.add(self._away[f] <= most).only_enforce_if(~step)
        return each * sum(steps)

    def _split(self, f: int) -> Any:
        """(C) Return the cost of a split gang: it computes as its slowest node and synchronises as its busiest NIC."""
        model, uses, j = self.model, self._uses[f], self._nodes.kin.lead[f]
        degree, batch = self._nodes.degree[f], self.batch
        rate = float(batch.weight[j] * batch.best[j]) / degree * self.units
        cost, compute, sync = (model.new_int_var(0, _MOST, "") for _ in range(3))
        for use in uses:
            for most, seconds in ((compute, use.compute), (sync, use.sync)):
                model.add(most >= floor(rate * seconds)).only_enforce_if(self._used[use.pattern])
        if batch.jobs[j].collective == "hierarchical":
            sync += self._phases(uses, degree, rate * float(batch.gradient[j]) / batch.bandwidth[0])
        hidden = floor((1 - float(batch.overlap[j])) * _PARTS) * compute
        model.add(cost >= compute)
        model.add(_PARTS * cost >= hidden + _PARTS * sync)
        if f in self._quiet:
            each = rate * degree * float(batch.gradient[j]) / batch.jobs[j].servers / batch.bandwidth[0]
            model.add(_PARTS * cost >= hidden + _PARTS * self._remote(f, floor(each)))
        model.add(cost >= sum(floor(use.cost * self.units) * self.x[use.pattern] for use in uses))  # their mean
        return cost

    def _phases(self, uses: Sequence[_Use], degree: int, each: float) -> Any:
        """Return the least of the phases among n nodes: a ring of n at the share of the busiest NIC."""
        model, cost = self.model, self.model.new_int_var(0, _MOST, "")
        nodes = sum(self.x[use.pattern] for use in uses)
        busy = {gangs: model.new_bool_var("") for gangs in dict.fromkeys(self._gangs[use.pattern] for use in uses)}
        for use in uses:
            model.add_implication(self._used[use.pattern], busy[self._gangs[use.pattern]])
        for n in range(2, min(degree, int(self._nodes.nodes.sum())) + 1):
            reached = model.new_bool_var("")
            model.add(nodes <= n - 1).only_enforce_if(~reached)
            for gangs, x in busy.items():
                model.add(cost >= floor(each * ring_bytes(n, 1.0) * gangs)).only_enforce_if(reached, x)
        return cost
