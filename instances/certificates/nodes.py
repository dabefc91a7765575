"""What gangs cost at least on a node, in whole numbers: options of jobs, and the search for sets of them, patterns."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor, inf, isfinite
from typing import Any, NamedTuple

from ..errors import InstanceError
from ..placement.rate import best_rate, ring_bytes
from .exact import SLACK

FINE = 2**60
"""Parts of the sum of weights in which costs are counted."""
ONE = 2**40
"""Parts of 1 in which shares of compute and duties are counted, rounded down."""


class Option(NamedTuple):
    """Some tasks of a job on a node; amounts of costs are of the whole gang, in parts of a unit.

    Attributes:
        family: of the job.
        degree, workers, servers: of the gang, and here; the servers of a gang that is all here may be anywhere.
        model: what it suffers by.
        compute, hidden: cost of its compute alone, and of the part that hides no synchronisation.
        fixed, nic: cost of synchronisation, and of that through the NIC if nobody else uses it.
        adds: whether these two add up; else the larger counts.
        floor: cost of synchronisation of the gang wherever its parts are.
        moved: cost of being moved, if this is not what already runs here.
        duty: of the NIC, if part of the gang is elsewhere.
        need: GPUs, cores, bytes, bytes/s, in parts of 1.
    """

    family: int
    degree: int
    workers: int
    servers: int
    model: int
    compute: int
    hidden: int
    fixed: int
    nic: int
    adds: bool
    floor: int
    moved: int
    duty: int
    need: tuple[int, ...]

    @property
    def split(self) -> bool:
        """Whether a part of the gang is elsewhere."""
        return self.workers < self.degree

    def whole(self, slower: int, busy: int) -> int:
        """Return what the gang costs at least, given what others add to its compute and their duty on the NIC."""
        compute, through = self.compute * (ONE + slower), self.nic * (ONE + busy)
        sync = max(self.floor * ONE, self.fixed * ONE + through if self.adds else max(self.fixed * ONE, through))
        return (max(compute, self.hidden * (ONE + slower) + sync) >> 40) + self.moved

    def here(self, slower: int, busy: int) -> int:
        """Return its part of that, by workers: the parts of a gang add up to no more than the gang costs."""
        return self.whole(slower, busy) * self.workers // self.degree


class Family(NamedTuple):
    """Jobs that are alike; of several one worker each.

    Attributes:
        jobs: their numbers.
        value: what leaving one out costs; `None` if it must be placed.
    """

    jobs: list[int]
    value: int | None


class Pattern(NamedTuple):
    """Options on one node: their cost less what they pay, and what each gang costs at least because of this node."""

    reduced: int
    options: tuple[Option, ...]
    whole: tuple[int, ...]


class Nodes:
    """The jobs and nodes of a problem in whole numbers.

    Attributes:
        families: of jobs.
        kinds: options and capacity of nodes that are alike, and how many nodes.
        host: what a model adds to the compute of another on its node, or on its GPU if that is less, in parts of 1.
    """

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self.unit = sum((Fraction(job.weight) for job in problem.jobs), Fraction(0)) / FINE or Fraction(1)
        fleet, speeds = problem.fleet, problem.speeds
        self.models = [speeds.models.index(job.model) for job in problem.jobs]
        both = zip(speeds.host.tolist(), speeds.gpu.tolist(), strict=True)
        # those that hold a whole GPU never share one, but then it costs little to count them so
        least = min if any(0 < job.worker.gpu < 1 for job in problem.jobs) else lambda host, _: host
        self.host = [[floor(Fraction(least(x, y)) * ONE) for x, y in zip(*rows, strict=True)] for rows in both]
        self.rate = [Fraction(x) if isfinite(x) else Fraction(0) for x in best_rate(problem).tolist()]
        self.running = {run.job: run for run in problem.running}
        self.compute = problem.compute().tolist()
        alike: dict[Any, list[int]] = {}
        for n in range(fleet.n_nodes):
            if fleet.usable[n]:
                alike.setdefault(self._kind(n), []).append(n)
        self.samples = [nodes[0] for nodes in alike.values()]
        rooms = [[self._room(job, n) for n in self.samples] for job in problem.jobs]
        self.families: list[Family] = []
        found: dict[Any, list[int]] = {}
        for j, job in enumerate(problem.jobs):
            lone = job.workers == (1,) and job.name not in self.running
            key = j if not lone else (
                job.model, job.worker, job.collective, job.servers > 0, job.weight, self.rate[j], job.value,
                job.where,
            )  # fmt: skip
            found.setdefault(key, []).append(j)
        for jobs in found.values():
            value = problem.jobs[jobs[0]].value
            self.families.append(Family(jobs, None if value is None else floor(Fraction(value) / self.unit)))
        alike_too: dict[Any, int] = {}
        for q, nodes in enumerate(alike.values()):
            options = tuple(
                option
                for f, family in enumerate(self.families)
                for option in self._options(f, family.jobs[0], nodes[0], rooms[family.jobs[0]], q)
            )
            has = tuple(ceil(x * ONE) for x in self._has(nodes[0]))
            alike_too[options, has] = alike_too.get((options, has), 0) + len(nodes)
        self.kinds = [Kind(self, list(options), has, count) for (options, has), count in alike_too.items()]

    def _has(self, n: int) -> tuple[Fraction, ...]:
        fleet = self.problem.fleet
        amounts = fleet.gpus[n], fleet.cpu[n], fleet.memory[n], fleet.nic[n]
        return tuple(Fraction(x.item()) * (1 + SLACK) for x in amounts)

    def _kind(self, n: int) -> Any:
        fleet, name = self.problem.fleet, self.problem.fleet.names[n]
        there = tuple(
            (run.job, *(x[run.nodes.index(name)] for x in (run.workers, run.servers)))
            for run in self.problem.running
            if name in run.nodes
        )
        kind = int(fleet.gpu_type[n]) if fleet.gpus[n] else -1
        marks = tuple(fleet.labelled[:, n].tolist()), tuple(fleet.tainted[:, n].tolist())
        return self._has(n), kind, float(fleet.link[n]), *marks, there

    def _room(self, job: Any, n: int) -> int:
        """Return how many workers of a job an empty node holds."""
        j = self.problem.jobs.index(job)
        if self.compute[j][n] == inf or not self.problem.fleet.admits(job.requires, job.tolerates)[n]:
            return 0
        most = min(job.workers[-1], job.most_per_node or job.workers[-1])
        fits = (floor(has / x) for has, x in zip(self._has(n), _need(job.worker), strict=True) if x)
        return min([most, *fits])

    def _options(self, f: int, j: int, n: int, rooms: list[int], q: int) -> Iterator[Option]:
        job = self.problem.jobs[j]
        run = self.running.get(job.name)
        name = self.problem.fleet.names[n]
        before = None
        if run is not None:
            k = run.nodes.index(name) if name in run.nodes else -1
            before = (run.workers[k], run.servers[k]) if k >= 0 else (0, 0)
        for degree in job.workers:
            for a in range(1, min(rooms[q], degree) + 1):
                for p in range(job.servers + 1) if a < degree else (0,):
                    moved = 0
                    if run is not None and (a != before[0] or (a < degree and p != before[1])):
                        if not run.movable:
                            continue
                        moved = floor(Fraction(run.migration) / self.unit)
                    yield self._option(f, j, n, degree, a, p, max(rooms), moved)

    def _option(self, f: int, j: int, n: int, degree: int, a: int, p: int, room: int, moved: int) -> Option:
        job, k, speeds = self.problem.jobs[j], self.models[j], self.problem.speeds
        fleet = self.problem.fleet
        per = Fraction(job.weight) * self.rate[j] / degree / self.unit
        size, link = Fraction(float(speeds.gradient[k])), Fraction(float(fleet.link[n]))
        nic = Fraction(float(fleet.nic[n]))
        split, others = a < degree, -(-(degree - a) // room)
        through = Fraction(0)
        if job.collective == "ps":
            servers = Fraction(job.servers)
            if split:
                fixed = size * a * p / servers / link
                through = size * (a * (servers - p) + p * (degree - a)) / servers / nic
            else:
                fixed = min(
                    max(size * a * x / servers / link, size * a * (servers - x) / servers / nic)
                    for x in range(job.servers + 1)
                )
        elif job.collective == "hierarchical":
            fixed = _ring(a) * size / link
            through = _ring(1 + others) * size / nic if split else Fraction(0)
        else:
            moved_bytes = (_ring(degree) if job.collective == "ring" else Fraction(2 * (degree > 1))) * size
            fixed = moved_bytes / link if a > 1 else Fraction(0)
            through = moved_bytes / nic if split else Fraction(0)
        compute = per * Fraction(self.compute[j][n])
        need = _need(job.worker)
        if split and p:
            need = tuple(x * a + y * p for x, y in zip(need, _need(job.server), strict=True))
        else:
            need = tuple(x * a for x in need)
        return Option(
            f, degree, a, p, k, floor(compute), floor((1 - Fraction(float(speeds.overlap[k]))) * compute),
            floor(per * fixed), floor(per * through), job.collective == "hierarchical",
            floor(per * self._apart(j, degree, room)) if split else 0, moved,
            floor(Fraction(float(speeds.duty[k])) * ONE) if split else 0, tuple(floor(x * ONE) for x in need),
        )  # fmt: skip


    def _apart(self, j: int, degree: int, room: int) -> Fraction:
        """Return the least seconds in which a gang synchronises that is on several nodes, of so much room each."""
        job, fleet = self.problem.jobs[j], self.problem.fleet
        size = Fraction(float(self.problem.speeds.gradient[self.models[j]]))
        link, nic = Fraction(float(fleet.link.max())), Fraction(float(fleet.nic.max()))
        if job.collective == "ps":
            # some node has a server or more, and not all workers
            return size * degree * min(Fraction(1, job.servers), Fraction(max(degree - room, 1), degree)) / nic
        if job.collective == "hierarchical":
            few = max(2, -(-degree // room))
            return min(
                (_ring(-(-degree // k)) * size / link + _ring(k) * size / nic for k in range(few, degree + 1)),
                default=Fraction(0),
            )
        return Fraction(0)


def _need(demand: Any) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, (demand.gpu, demand.cpu, demand.memory, demand.nic)))


def _ring(n: int) -> Fraction:
    return Fraction(2 * (n - 1), n)


class Kind:
    """Nodes that are alike, and the search for their patterns."""

    def __init__(self, nodes: Nodes, options: list[Option], has: tuple[int, ...], count: int) -> None:
        self.nodes, self.options, self.has, self.count = nodes, options, has, count
        self.pays = [0] * len(options)
        self.many = [len(family.jobs) for family in nodes.families]
        # what a share of 1 more compute costs at least
        full = [not x.split and x.compute >= x.hidden + x.fixed for x in options]
        slopes = [(x.compute if y else x.hidden) * x.workers // x.degree for x, y in zip(options, full, strict=True)]
        host = nodes.host
        # what two options cost each other at least
        self.meet = [
            [(a * host[x.model][y.model] + b * host[y.model][x.model]) >> 40 for y, b in zip(options, slopes, strict=True)]
            for x, a in zip(options, slopes, strict=True)
        ]

    def pay(self, prices: list[int]) -> None:
        """Let options pay parts of the prices of gangs, rounded up."""
        self.pays = [-(-prices[x.family] * x.workers // x.degree) for x in self.options]

    def patterns(self, limit: int, steps: list[int]) -> Iterator[Pattern]:
        """Yield all patterns whose cost less pay is below `limit`."""
        self.limit, self.steps = limit, steps
        yield from self._extend([], [], 0, list(range(len(self.options))), self.has)

    def _extend(
        self, chosen: list[int], slower: list[int], busy: int, able: list[int], left: tuple[int, ...]
    ) -> Iterator[Pattern]:
        """Yield the patterns that have the chosen options, and others out of those that are able."""
        options, host, pays = self.options, self.nodes.host, self.pays
        self.steps[0] -= 1
        if self.steps[0] < 0:
            raise InstanceError("steps", "are over before the search is")
        mine = [options[i] for i in chosen]
        whole = [x.whole(s, busy - x.duty) for x, s in zip(mine, slower, strict=True)]
        value = sum(w * x.workers // x.degree - pays[i] for w, x, i in zip(whole, mine, chosen, strict=True))
        if value < self.limit:
            yield Pattern(value, tuple(mine), tuple(whole))
        # what a model adds to the chosen at least, and suffers
        added, suffers = {}, {}
        for k in {options[i].model for i in able}:
            added[k] = suffers[k] = 0
            for x, s, now in zip(mine, slower, whole, strict=True):
                h = host[x.model][k]
                more = x.hidden * h >> 40 if x.split else x.whole(s + h, 0) - now
                added[k] += more * x.workers // x.degree
                suffers[k] += host[k][x.model]
        taken = [x.family for x in mine]
        gains: list[tuple[int, int]] = []
        for i in able:
            x = options[i]
            if taken.count(x.family) < self.many[x.family] and all(map(le, x.need, left)):
                gains.append((x.here(suffers[x.model], busy) + added[x.model] - pays[i], i))
        gains.sort()
        for k, least in enumerate(self._least(gains, taken, left[0])):
            if value + least >= self.limit:
                continue
            i = gains[k][1]
            x = options[i]
            more_slower = [s + host[y.model][x.model] for y, s in zip(mine, slower, strict=True)]
            yield from self._extend(
                [*chosen, i], [*more_slower, suffers[x.model]], busy + x.duty, [y for _, y in gains[k:]],
                tuple(a - b for a, b in zip(left, x.need, strict=True)),
            )  # fmt: skip

    def _least(self, gains: list[tuple[int, int]], taken: list[int], room: int) -> list[int]:
        """Return what a set adds at least whose first option is each of these: its options gain, and meet one another.

        Of m options each meets m - 1 others; those that gain nothing need not be there, but for the first.
        """
        options, meet = self.options, self.meet
        family = [options[i].family for _, i in gains]
        many = {f: self.many[f] - taken.count(f) for f in family}
        able = [k for k, (gain, _) in enumerate(gains) if gain < 0]
        one = {f: [k for k in able if family[k] == f] for f in many}
        found = [gain for gain, _ in gains]
        if not able:
            return found
        sums = []
        for k, (gain, i) in enumerate(gains):
            row, others = meet[i], []
            for f, ks in one.items():
                if ks:
                    others += [min([row[gains[y][1]] for y in ks])] * (many[f] - (f == family[k]))
            others.sort()
            sums.append(list(accumulate(others, initial=2 * gain)))
        least = min(options[gains[k][1]].need[0] for k in able)
        for m in range(2, 1 + min(sum(many.values()), room // least if least else len(gains))):
            # the m - 1 cheapest of those that are not before it, at most as many of each family as there are
            best: list[int] = []
            last: dict[int, int] = {}
            for k in range(len(gains) - 1, -1, -1):
                if len(sums[k]) < m:
                    continue
                cost, f = sums[k][m - 1], family[k]
                if gains[k][0] < 0:
                    before = last.get(f)
                    if before is None or cost < before:
                        for _ in range(min(m, many[f])):
                            if before is not None:
                                best.remove(before)
                            insort(best, cost)
                        last[f] = cost
                if len(best) < m - 1:
                    continue
                total = cost + sum(best[: m - 1])
                found[k] = min(found[k], total // 2)
        return found


from bisect import insort
from operator import le
from itertools import accumulate
