"""Placement in CP-SAT: slowdown, throughput. Every figure is rounded down, so the optimum of the model is a bound."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from math import ceil, floor, log2
from typing import Any

from gangplan.instances.placement.rate import ring_bytes

from .cpsat_model import AssignmentModel, at_least, both

GOAL_UNITS = 1 << 26
"""What 1 of the goal becomes in integers where jobs weigh about 1."""
_LONGEST = 1 << 44
_KEPT = 1 << 30
"""What all of a job's throughput becomes in integers."""
_WEIGHT = 1 << 24
"""What a weight of 1 becomes."""
_PARTS = 1 << 16
"""The largest denominator of a share of the compute: off by 1e-9 or less, and decimals of four digits are exact."""


class Cost:
    """Costs of an `AssignmentModel`, in whole units; letters as in docs/placement.md.

    Seconds of job j are counted in its own ticks: such that a tick more of its step, with all the workers it may have,
    is one unit more of its weighted slowdown (for the goal throughput: of its slowdown).

    Attributes:
        total: the goal, in units. units: integers that 1 of the goal becomes: `GOAL_UNITS` times the batch's own unit.
        weight: of each job, in that unit.
    """

    def __init__(self, plan: AssignmentModel, ceiling: float | None) -> None:
        self.plan, self.batch, self.model = plan, plan.batch, plan.model
        batch = self.batch
        self.jobs = range(len(batch.jobs))
        self.units = GOAL_UNITS * batch.unit
        if ceiling is not None and ceiling * self.units > _LONGEST:
            self.units = 2.0 ** floor(log2(_LONGEST / ceiling))
        self.weight = (batch.weight * (self.units / GOAL_UNITS)).tolist()
        self.top = _LONGEST if ceiling is None else min(_LONGEST, floor(ceiling * self.units) + 1)
        slowdown = batch.problem.goal == "slowdown"
        self.most = [job.workers[-1] for job in batch.jobs]
        self.tick = [
            GOAL_UNITS * (self.weight[j] if slowdown else 1.0) * float(batch.best[j]) / self.most[j] for j in self.jobs
        ]
        self.compute = [self._seconds() for _ in self.jobs]
        self.sync = [self._seconds() for _ in self.jobs]
        self.together: dict[tuple[int, int, int], Any] = {}
        self.sharing: dict[tuple[int, int, int], Any] = {}
        self._meetings()
        self._computes()
        self._network()
        self._syncs()
        self.total: Any = sum(self._cost(j) for j in self.jobs)
        self.model.minimize(self.total)

    def _seconds(self) -> Any:
        return self.model.new_int_var(0, _LONGEST, "")

    def ticks(self, j: int, seconds: float) -> int:
        """Return seconds of job j, of either sign, in its ticks, rounded down."""
        return min(floor(seconds * self.tick[j]), _LONGEST)

    def _cost(self, j: int) -> Any:
        """(T) A step takes max(c, (1 - o) c + s), and costs by the number of workers; so do absence and moving."""
        batch, model, job = self.batch, self.model, self.batch.jobs[j]
        most = self.top if batch.problem.goal == "slowdown" else floor(self.weight[j] * GOAL_UNITS) + 1
        value = floor(min((job.value or 0.0) * self.units, float(_LONGEST)))
        cost = model.new_int_var(0, max(most, value), "")
        step = self._seconds()
        model.add(step >= self.compute[j])
        shown = 1 - Fraction(float(batch.overlap[j])).limit_denominator(_PARTS)
        parts = shown.denominator
        model.add(parts * step >= shown.numerator * self.compute[j] + parts * self.sync[j])
        for k, x in self.plan.size[j].items():
            if batch.problem.goal == "throughput":
                self._loss(j, k, x, step, cost)
            else:
                model.add(k * cost >= self.most[j] * step).only_enforce_if(x)
        if job.value is not None:
            left_out = model.new_bool_var("")
            model.add(sum(self.plan.size[j].values()) + left_out == 1)
            model.add(cost >= value).only_enforce_if(left_out)
        if j in self.plan.moved:
            return cost + floor(min(batch.standing[j][1] * self.units, float(_LONGEST))) * self.plan.moved[j]
        return cost

    def _loss(self, j: int, k: int, x: Any, step: Any, cost: Any) -> None:
        """(L) Of its weight, a job loses 1 - 1 over its slowdown; the division is rounded in its favour."""
        model, weight = self.model, self.weight[j]
        if not weight:
            return
        slowdown = model.new_int_var(GOAL_UNITS // 16, _LONGEST, "")  # no job is 16 times as fast as alone
        model.add(k * slowdown >= self.most[j] * step).only_enforce_if(x)
        kept = model.new_int_var(0, 16 * _KEPT, "")
        model.add_division_equality(kept, GOAL_UNITS * _KEPT, slowdown)
        parts = _KEPT // GOAL_UNITS * _WEIGHT
        most = floor(weight * parts * GOAL_UNITS)
        model.add(parts * cost >= most - ceil(weight * _WEIGHT) * (kept + 1)).only_enforce_if(x)

    def _meetings(self) -> None:
        """(M) together[i, j, n]: both have workers on n. sharing: both have tasks on one GPU of n."""
        for i, j in combinations(self.jobs, 2):
            for n in self.plan.busy[i].keys() & self.plan.busy[j].keys():
                sharing = n in self.plan.card[i] and n in self.plan.card[j]
                if sharing or self._added(i, j) or self._added(j, i):
                    self.together[i, j, n] = both(self.model, self.plan.busy[i][n], self.plan.busy[j][n])
                if sharing:
                    self.sharing[i, j, n] = self._on_one_card(i, j, n)

    def _on_one_card(self, i: int, j: int, n: int) -> Any:
        model = self.model
        found = []
        for x, y in zip(self.plan.card[i][n], self.plan.card[j][n], strict=True):
            found.append(both(model, at_least(model, x, 1), at_least(model, y, 1)))
        shared = model.new_bool_var("")
        model.add_max_equality(shared, found)
        return shared

    def _added(self, j: int, i: int) -> float:
        return float(self.batch.problem.speeds.host[self.batch.model[j], self.batch.model[i]])

    def _computes(self) -> None:
        """(I) The compute of j on n is c (1 + the sum of what those beside it add), and the slowest node's counts."""
        batch, speeds = self.batch, self.batch.problem.speeds
        extra: defaultdict[tuple[int, int], list[tuple[float, Any]]] = defaultdict(list)
        for (i, j, n), met in self.together.items():
            for one, other in ((i, j), (j, i)):
                extra[one, n].append((self._added(one, other), met))
                if (i, j, n) in self.sharing:
                    more = float(speeds.gpu[batch.model[one], batch.model[other]]) - self._added(one, other)
                    extra[one, n].append((more, self.sharing[i, j, n]))
        for j in self.jobs:
            for n, busy in self.plan.busy[j].items():
                alone = float(batch.alone[j, batch.kind[n]])
                terms = [(self.ticks(j, alone * share), x) for share, x in extra[j, n]]
                load = self.ticks(j, alone) + sum(a * x for a, x in terms if a)
                self.model.add(self.compute[j] >= load).only_enforce_if(busy)

    def _network(self) -> None:
        """(K) crosses[level][j][a]: job j has tasks inside member a of a level and outside; gangs: how many do."""
        batch, model = self.batch, self.model
        self.inside: list[list[dict[int, Any]]] = []
        self.spans: list[list[Any]] = []
        self.crosses: list[list[dict[int, Any]]] = []
        self.gangs: list[dict[int, Any]] = []
        for level in range(len(batch.bandwidth)):
            member = batch.members[level]
            inside: list[dict[int, Any]] = []
            spans, crosses = [], []
            for j in self.jobs:
                nodes: defaultdict[int, list[Any]] = defaultdict(list)
                for n, x in self.plan.here[j].items():
                    nodes[member[n]].append(x)
                there = {}
                for a, xs in nodes.items():
                    there[a] = xs[0]
                    if len(xs) > 1:
                        there[a] = model.new_bool_var("")
                        model.add_max_equality(there[a], xs)
                wide = at_least(model, sum(there.values()), 2)
                cross: dict[int, Any] = {}
                tasks = self.most[j] + batch.jobs[j].servers
                if tasks > 1 and len(there) > 1:
                    cross = {a: both(model, x, wide) for a, x in there.items()}
                inside.append(there)
                spans.append(wide)
                crosses.append(cross)
            gangs = {}
            for a in sorted(set(member)):
                who = [cross[a] for cross in crosses if a in cross]
                gangs[a] = model.new_int_var(0, len(who), "")
                model.add(gangs[a] == sum(who))
            self.inside.append(inside)
            self.spans.append(spans)
            self.crosses.append(crosses)
            self.gangs.append(gangs)

    def _syncs(self) -> None:
        for j in self.jobs:
            if not self.tick[j] or not self.batch.gradient[j]:
                continue
            kind = self.batch.jobs[j].collective
            {"ps": self._servers, "hierarchical": self._phases}.get(kind, self._around)(j)

    def _load(self, j: int, level: int, a: int, each: int) -> Any:
        """Return the ticks of job j, which crosses the link of a, for what takes it `each` alone."""
        if self.batch.even:
            return each * self.gangs[level][a]
        return each + sum(floor(each * duty) * x for duty, x in self._others(j, level, a))

    def _moved(self, j: int, level: int, a: int, through: Any, each: int) -> Any:
        most = 2 * self.batch.jobs[j].servers * self.most[j]
        if self.batch.even:
            return each * self._product(through, self.gangs[level][a], most, len(self.jobs))
        load = each * through
        for duty, x in self._others(j, level, a):
            again = self.model.new_int_var(0, most, "")
            self.model.add(again >= through).only_enforce_if(x)
            load += floor(each * duty) * again
        return load

    def _others(self, j: int, level: int, a: int) -> list[tuple[float, Any]]:
        """Return (duty, whether it crosses the link of a) of the other jobs that may."""
        return [(float(self.batch.duty[i]), x[a]) for i, x in enumerate(self.crosses[level]) if i != j and a in x]

    def _links(self, j: int) -> list[tuple[int, Any, float]]:
        """Return (node, whether several workers of j are there, bytes/s of its links)."""
        return [(n, at_least(self.model, w, 2), self.batch.link[n]) for n, w in self.plan.w[j].items()]

    def _around(self, j: int) -> None:
        """Ring and tree: what is sent, over the slowest link on the way."""
        size, ring = float(self.batch.gradient[j]), self.batch.jobs[j].collective == "ring"
        links = self._links(j) if self.most[j] > 1 else []
        for k, x in self.plan.size[j].items():
            moved = ring_bytes(k, size) if ring else 2 * size * (k > 1)
            for _, several, link in links if k > 1 else []:
                self.model.add(self.sync[j] >= self.ticks(j, moved / link)).only_enforce_if(several, x)
            for level, bandwidth in enumerate(self.batch.bandwidth):
                for a, crosses in self.crosses[level][j].items():
                    load = self._load(j, level, a, self.ticks(j, moved / bandwidth))
                    self.model.add(self.sync[j] >= load).only_enforce_if(crosses, x)

    def _phases(self, j: int) -> None:
        """Hierarchical: a ring within nodes, one among nodes, one among racks, ..., one after the other."""
        batch, model, size = self.batch, self.model, float(self.batch.gradient[j])
        if self.most[j] < 2:
            return
        phases = [self._seconds() for _ in range(len(batch.bandwidth) + 1)]
        links = self._links(j)
        slowest: dict[float, Any] = {}
        for speed in {link for _, _, link in links}:
            slowest[speed] = model.new_bool_var("")
            model.add_max_equality(slowest[speed], [x for _, x, link in links if link == speed])
        for m in range(2, self.most[j] + 1):
            reached = self._any_reaches(list(self.plan.w[j].values()), m)
            for speed, shared in slowest.items():
                each = self.ticks(j, ring_bytes(m, size) / speed)
                model.add(phases[0] >= each).only_enforce_if(reached, shared)
        for level in range(len(batch.bandwidth)):
            groups: defaultdict[int, list[Any]] = defaultdict(list)
            above = dict(zip(batch.members[level], batch.members[level + 1], strict=True))
            for a, x in self.inside[level][j].items():
                groups[above[a]].append(x)
            wide = max((len(xs) for xs in groups.values()), default=0)
            counts = [sum(xs) for xs in groups.values()]
            for m in range(2, min(wide, self.most[j]) + 1):
                reached = self._any_reaches(counts, m)
                for lower in range(level + 1):
                    each = self.ticks(j, ring_bytes(m, size) / batch.bandwidth[lower])
                    for a, crosses in self.crosses[lower][j].items():
                        load = self._load(j, lower, a, each)
                        model.add(phases[level + 1] >= load).only_enforce_if(reached, crosses, self.spans[level][j])
        model.add(self.sync[j] >= sum(phases))

    def _any_reaches(self, counts: list[Any], m: int) -> Any:
        model = self.model
        reached = model.new_bool_var("")
        for count in counts:
            model.add(count < m).only_enforce_if(~reached)
        return reached

    def _servers(self, j: int) -> None:
        """Parameter servers: gradients out and parameters in at every member that the gang crosses."""
        batch, model, job = self.batch, self.model, self.batch.jobs[j]
        size, servers = float(batch.gradient[j]), job.servers
        total = sum(k * x for k, x in self.plan.size[j].items())
        for n, p in self.plan.p[j].items():
            if n in self.plan.w[j]:
                inside = self._product(self.plan.w[j][n], p, self.most[j], servers)
                model.add(self.sync[j] >= self.ticks(j, size / servers / batch.link[n]) * inside)
        for level, bandwidth in enumerate(batch.bandwidth):
            member = batch.members[level]
            for a, crosses in self.crosses[level][j].items():
                w: Any = sum(x for n, x in self.plan.w[j].items() if member[n] == a)
                p = sum(x for n, x in self.plan.p[j].items() if member[n] == a)
                apart = self._product_of(w, servers - p, self.most[j], servers)
                back = self._product_of(p, total - w, servers, self.most[j])
                through = model.new_int_var(0, 2 * servers * self.most[j], "")
                model.add(through == apart + back)
                each = self.ticks(j, size / servers / bandwidth)
                load = self._moved(j, level, a, through, each)
                model.add(self.sync[j] >= load).only_enforce_if(crosses)

    def _product(self, x: Any, y: Any, most_x: int, most_y: int) -> Any:
        product = self.model.new_int_var(0, most_x * most_y, "")
        self.model.add_multiplication_equality(product, [x, y])
        return product

    def _product_of(self, x: Any, y: Any, most_x: int, most_y: int) -> Any:
        a, b = self.model.new_int_var(0, most_x, ""), self.model.new_int_var(0, most_y, "")
        self.model.add(a == x)
        self.model.add(b == y)
        return self._product(a, b, most_x, most_y)
