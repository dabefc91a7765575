"""Placements in whole numbers: what each gang costs at least because of the tasks that it has on a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor, inf, isfinite
from typing import Any, NamedTuple

from ..placement.rate import best_rate
from .exact import SLACK

FINE = 2**60
"""Parts of the sum of all weights in which costs are counted."""
ONE = 2**40
"""Parts of 1 in which shares of compute, duties and amounts are counted, rounded down."""


class NodeOption(NamedTuple):
    """Some tasks of a gang on a node, workers among them; costs are of the whole gang, synchronisation as if it ran so.

    Attributes:
        family: of the gang.
        degree, workers, servers: of the gang, and here; the servers of a gang that is all here may be anywhere.
        model: what it suffers by.
        compute, hidden: cost of its compute alone, and of the part that hides no synchronisation.
        fixed, nic, floor: cost of synchronisation inside, through a NIC of its own, and wherever the rest may be.
        adds: whether the first two add up; else the largest counts.
        moved: cost of being moved, if this is not what already runs here.
        duty: of the NIC, if part of the gang is elsewhere, in parts of 1.
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
    floor: int
    adds: bool
    moved: int
    duty: int
    need: tuple[int, ...]

    @property
    def split(self) -> bool:
        """Whether workers are elsewhere."""
        return self.workers < self.degree

    def whole(self, slower: int = 0, busy: int = 0) -> int:
        """Return what the gang costs at least, given what others add to its compute and their duty on the NIC."""
        compute, through = self.compute * (ONE + slower), self.nic * (ONE + busy)
        sync = self.fixed * ONE + through if self.adds else max(self.fixed * ONE, through)
        return max(compute, self.hidden * (ONE + slower) + max(sync, self.floor * ONE)) // ONE + self.moved

    def part(self, cost: int) -> int:
        """Return the share of its workers in a cost: a gang costs no less than the mean over its workers."""
        return cost * self.workers // self.degree


class JobFamily(NamedTuple):
    """Jobs that are alike, of one worker each if there are several.

    Attributes:
        first: the number of its first job.
        size: how many jobs.
        value: what leaving one out costs; `None` if it must be placed.
        servers: of a gang.
        served: cost of synchronisation for each server on a node without workers.
    """

    first: int
    size: int
    value: int | None
    servers: int
    served: int


class NodeFamilies:
    """The families of jobs, and the kinds of usable nodes: the options there, what a node has, how many there are.

    `host`: what a model adds to another's compute on its node, on a GPU that they share if that is less.
    """

    def __init__(self, problem: Any) -> None:
        self.problem, fleet, jobs = problem, problem.fleet, problem.jobs
        self.unit = sum((Fraction(job.weight) for job in jobs), Fraction(0)) / FINE or Fraction(1)
        self._running = {run.job: run for run in problem.running}
        self._rate = [Fraction(x) if isfinite(x) else Fraction(0) for x in best_rate(problem).tolist()]
        shared = any(0 < job.worker.gpu < 1 for job in jobs)
        both = zip(problem.speeds.host.tolist(), problem.speeds.gpu.tolist(), strict=True)
        self.host = [
            [floor(Fraction(min(x, y) if shared else x) * ONE) for x, y in zip(*rows, strict=True)] for rows in both
        ]
        alike: dict[Any, list[int]] = {}
        for n in fleet.usable.nonzero()[0].tolist():
            alike.setdefault(self._kind(n), []).append(n)
        self._sample = [nodes[0] for nodes in alike.values()]
        found: dict[Any, list[int]] = {}
        for j, job in enumerate(jobs):
            key = (job.model, job.worker, job.collective, job.servers, job.weight, self._rate[j], job.value, job.where)
            lone = job.workers == (1,) and job.name not in self._running
            found.setdefault(key if lone else j, []).append(j)
        self.families: list[JobFamily] = []
        columns = []
        for f, same in enumerate(found.values()):
            job, nic = jobs[same[0]], Fraction(fleet.nic.max().item())
            size = Fraction(problem.speeds.gradient[problem.speeds.models.index(job.model)].item())
            served = Fraction(job.weight) * self._rate[same[0]] * size / max(job.servers, 1) / nic / self.unit
            value = None if job.value is None else floor(Fraction(job.value) / self.unit)
            self.families.append(JobFamily(same[0], len(same), value, job.servers, floor(served)))
            columns.append(self._options(f, same[0]))
        kinds = Counter[Any]()
        for n, nodes, own in zip(self._sample, alike.values(), zip(*columns, strict=True), strict=True):
            has = tuple(ceil(x * ONE) for x in self._has(n))
            kinds[tuple(x for options in own for x in options), has] += len(nodes)
        self.kinds = [(options, has, count) for (options, has), count in kinds.items()]

    def _has(self, n: int) -> tuple[Fraction, ...]:
        fleet = self.problem.fleet
        return tuple(Fraction(x[n].item()) * (1 + SLACK) for x in (fleet.gpus, fleet.cpu, fleet.memory, fleet.nic))

    def _kind(self, n: int) -> Any:
        """Return what makes nodes alike: what they have, who may be there, and who is."""
        fleet, name = self.problem.fleet, self.problem.fleet.names[n]
        alone = n if any(name in run.nodes for run in self.problem.running) else -1
        marks = *fleet.labelled[:, n].tolist(), *fleet.tainted[:, n].tolist()
        kind = int(fleet.gpu_type[n]) if fleet.gpus[n] else -1
        return self._has(n), kind, float(fleet.link[n]), marks, alone

    def _options(self, f: int, j: int) -> Iterator[tuple[NodeOption, ...]]:
        """Yield the options of a job on each kind of node."""
        job, fleet, speeds = self.problem.jobs[j], self.problem.fleet, self.problem.speeds
        seconds = self.problem.compute_at(j, self._sample).tolist()
        admits, need, server = fleet.admits(job.requires, job.tolerates), _need(job.worker), _need(job.server)
        rooms = []
        for n, x in zip(self._sample, seconds, strict=True):
            fits = (floor(has / y) for has, y in zip(self._has(n), need, strict=True) if y)
            most = min([job.workers[-1], job.most_per_node or job.workers[-1], *fits])
            rooms.append(most if x < inf and admits[n] else 0)
        k, room = speeds.models.index(job.model), max(rooms, default=0)
        size, duty, shown = (Fraction(x[k].item()) for x in (speeds.gradient, speeds.duty, speeds.overlap))
        ways = [(d, _Sync(job, d, size, room, fleet)) for d in job.workers]
        for n, x, most in zip(self._sample, seconds, rooms, strict=True):
            options = []
            for d, sync in ways:
                per = Fraction(job.weight) * self._rate[j] / d / self.unit
                for a in range(1, min(most, d) + 1):
                    for p in range(job.servers + 1) if a < d else (0,):
                        moved = self._moved(job, n, a, p if a < d else None)
                        if moved is None:
                            continue
                        inside, through, apart = sync.seconds(a, p, Fraction(fleet.link[n].item()))
                        compute = per * Fraction(x)
                        takes = tuple(floor((a * y + p * z) * ONE) for y, z in zip(need, server, strict=True))
                        options.append(NodeOption(
                            f, d, a, p, k, floor(compute), floor((1 - shown) * compute),
                            floor(per * inside), floor(per * through), floor(per * apart),
                            job.collective == "hierarchical", moved,
                            floor(duty * ONE) if a < d else 0, takes,
                        ))  # fmt: skip
            yield tuple(options)

    def _moved(self, job: Any, n: int, a: int, p: int | None) -> int | None:
        """Return what moving costs a job that has these tasks on a node, `None` if it may not."""
        run, name = self._running.get(job.name), self.problem.fleet.names[n]
        if run is None:
            return 0
        before = dict(zip(run.nodes, zip(run.workers, run.servers, strict=True), strict=True))
        workers, servers = before.get(name, (0, 0))
        if a == workers and p in (None, servers):
            return 0
        return floor(Fraction(run.migration) / self.unit) if run.movable else None


class _Sync:
    """Seconds in which a gang of one degree synchronises at least."""

    def __init__(self, job: Any, degree: int, size: Fraction, room: int, fleet: Any) -> None:
        self.job, self.degree, self.size, self.room = job, degree, size, max(1, room)
        self.nic = Fraction(fleet.nic.max().item())
        few, link = max(2, -(-degree // self.room)), Fraction(fleet.link.max().item())
        self.apart = Fraction(0)
        if job.collective == "ps":  # some node has a server or more, and not all workers
            outside = Fraction(max(degree - room, 1), degree)
            self.apart = size * degree * min(Fraction(1, job.servers), outside) / self.nic
        elif job.collective == "hierarchical" and few <= degree:
            ways = range(few, degree + 1)
            self.apart = min(_ring(-(-degree // k)) * size / link + _ring(k) * size / self.nic for k in ways)

    def seconds(self, a: int, p: int, link: Fraction) -> tuple[Fraction, Fraction, Fraction]:
        """Return those inside a node with so many workers and servers, through its NIC, and wherever the rest is.

        Phases of a hierarchy take as long in all as one ring of all nodes over a NIC, or longer.
        """
        d, size, nic, servers = self.degree, self.size, self.nic, self.job.servers
        split, others = a < d, -(-(d - a) // self.room)
        if self.job.collective == "ps":
            ways = [
                (size * a * x / servers / link, size * (a * (servers - x) + x * (d - a)) / servers / nic)
                for x in ([p] if split else range(servers + 1))
            ]
            inside, through = min(ways, key=max)
            return (inside, through, self.apart) if split else (max(inside, through), Fraction(0), Fraction(0))
        if self.job.collective == "hierarchical":
            return _ring(a) * size / link, _ring(1 + others) * size / nic, self.apart * split
        sent = _ring(d) * size if self.job.collective == "ring" else Fraction(2 * (d > 1)) * size
        return sent / link * (a > 1), sent / nic * split, Fraction(0)


def _need(demand: Any) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, (demand.gpu, demand.cpu, demand.memory, demand.nic)))


def _ring(n: int) -> Fraction:
    return Fraction(2 * (n - 1), n)
