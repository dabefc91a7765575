"""What a job may have on one node, what it costs there at least, and the search for sets of them: patterns.

A pattern is a set of options of different jobs that fit on one node. An option of job j is a > 0 workers and p servers
of it; all of the gang, or a part. Servers on nodes without workers are in no pattern. With c, s the compute and
synchronisation that j cannot avoid given who else is on the node and how many gangs g with workers there use its NIC,
and d the gang's workers,

    F = w b / d a / d max(c, (1 - o) c + s)

is a part of what j costs: exactly that if the gang is all here; and no more than it if not, as every node the gang
uses puts such a floor under its one step, and a mean of floors, weighted by a / d, is a floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray, IntArray
from gangplan.instances.placement.rate import ring_bytes
from gangplan.instances.verify import TOLERANCE

from ..processes import interruptible
from ..run import Run
from .best_case import BestCase
from .prepare import Indices, PreparedBatch
from .pricing import PricedKind, PricingSearch, search
from .state import PlacementState

_PARTS = 8
"""Of a GPU at most, see `parts_of`."""


@dataclass(frozen=True, slots=True, eq=False)
class Kinship:
    """Jobs that are alike in all that matters count as one: gangs of one worker, which cannot be split.

    Attributes:
        members: the jobs of each family.
        apart: bool (f, f), families that cannot meet on a node; a family of one job does not meet itself.
    """

    members: list[list[int]]
    apart: BoolArray

    @property
    def lead(self) -> list[int]:
        """The first job of each family."""
        return [jobs[0] for jobs in self.members]


def families(batch: PreparedBatch) -> Kinship:
    """Return the families of the jobs."""
    found: dict[object, list[int]] = {}
    for j, job in enumerate(batch.jobs):
        lone = job.workers == (1,) and not job.servers and not batch.apart[j] and not job.whole_nodes
        key = (job.model, job.worker, job.weight, job.value, job.where) if lone else j
        found.setdefault(key, []).append(j)
    members = list(found.values())
    lead = [jobs[0] for jobs in members]
    apart = np.zeros((len(lead), len(lead)), dtype=bool)
    for a, j in enumerate(lead):
        for b, i in enumerate(lead):
            guarded = a != b and (batch.jobs[j].whole_nodes or batch.jobs[i].whole_nodes)
            apart[a, b] = guarded or i in batch.apart[j] or (a == b and len(members[a]) == 1)
    return Kinship(members, apart)


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """All options of one kind of node, n of them, as columns.

    Attributes:
        family, workers, servers: int (n,).
        split: bool (n,), whether a part of the gang is elsewhere.
        gpus: int (n,). cpu, memory: float64 (n,).
        rate: w b / d a / d, float64 (n,).
        compute: seconds alone. hidden: 1 - overlap. model: int (n,).
        fixed, nic: seconds of synchronisation: inside, and for each gang on the NIC.
        adds: bool (n,), whether the two add up; else the larger counts.
        cover: share of the gang, float64 (n,).
        room: GPUs, cores and bytes of the node.
    """

    family: IntArray
    workers: IntArray
    servers: IntArray
    split: BoolArray
    gpus: IntArray
    cpu: FloatArray
    memory: FloatArray
    rate: FloatArray
    compute: FloatArray
    hidden: FloatArray
    model: IntArray
    fixed: FloatArray
    nic: FloatArray
    adds: BoolArray
    cover: FloatArray
    room: tuple[int, float, float]

    def slower(self, chosen: tuple[int, ...], host: FloatArray) -> FloatArray:
        """Return what each option of a pattern suffers from the others, as a share of its compute."""
        index = np.array(chosen, dtype=int)
        busy, model = self.workers[index] > 0, self.model[index]
        adds = host[np.ix_(model, model)] * busy[None] * busy[:, None]
        return np.asarray(adds.sum(axis=1) - np.diag(adds))

    def cost(self, which: Any, slower: Any = 0.0, gangs: int = 1) -> FloatArray:
        """Return F of some options with `slower` added to their compute, as a share, and so many gangs on the NIC."""
        compute, crossing, fixed = self.compute[which] * (1 + slower), self.nic[which] * gangs, self.fixed[which]
        sync = np.where(self.adds[which], fixed + crossing, np.maximum(fixed, crossing))
        return np.asarray(self.rate[which] * np.maximum(compute, self.hidden[which] * compute + sync))

    def pattern_cost(self, chosen: tuple[int, ...], host: FloatArray) -> float:
        """Return what a pattern costs."""
        index = np.array(chosen, dtype=int)
        return float(self.cost(index, self.slower(chosen, host), int(self.split[index].sum())).sum())


def options_of(batch: PreparedBatch, kin: Kinship, kind: int) -> Options:
    """Return the options on a node of `kind`."""
    rows = list[OptionRow]()
    for f, j in enumerate(kin.lead):
        job = batch.jobs[j]
        degree, adds = job.workers[0], job.collective == "hierarchical"
        for a in range(1, min(int(batch.room[j, kind]), degree) + 1):
            for p in range(job.servers + 1):
                split = a < degree or p < job.servers
                rows.append(OptionRow(f, j, degree, a, p, split, *_sync(batch, j, kind, degree, a, p), adds))
    return _fitting(_columns(batch, kind, rows))


def relaxed_options(batch: PreparedBatch, families: Sequence[Sequence[int]], kind: int) -> Options:
    """Return options for families of jobs that differ in how they synchronise, each at its least for any of the family.

    Servers are wherever that is best for the gang, and take no room. GPUs are counted in parts of one, `parts_of`; of a
    share that is no whole number of them what is above counts nothing.
    """
    best, parts = BestCase(batch), parts_of(batch)
    rows = list[OptionRow]()
    for f, jobs in enumerate(families):
        j, ways = jobs[0], {(batch.jobs[i].collective, batch.jobs[i].servers): i for i in jobs}
        for degree in batch.jobs[j].workers:
            floor = min(best.floors(i, degree)[1] for i in ways.values())
            if not np.isfinite(floor):
                continue
            for a in range(1, min(int(batch.room[j, kind]), degree) + 1):
                found = [
                    _sync(batch, i, kind, degree, a, p) for (_, servers), i in ways.items() for p in range(servers + 1)
                ]
                fixed, nic = min(x for x, _ in found), min(x for _, x in found)
                if a == degree:
                    fixed, nic = min(max(x) for x in found), 0.0
                elif not batch.even:  # others may load the NIC less than all of the time
                    fixed, nic = max(fixed, nic), 0.0
                rows.append(OptionRow(f, j, degree, a, 0, a < degree, max(fixed, floor), nic, False))
    options, lead = _fitting(_columns(batch, kind, rows)), [jobs[0] for jobs in families]
    worker = np.floor(batch.each[lead] * batch.share[lead] * parts + TOLERANCE).astype(np.int64)
    gpus, cpu, memory = options.room
    return replace(options, gpus=options.workers * worker[options.family], room=(gpus * parts, cpu, memory))


def parts_of(batch: PreparedBatch) -> int:
    """Return in how many parts of a GPU the shares of one that jobs take are counted."""
    shares = np.unique(batch.share[batch.each > 0])
    return next((n for n in range(1, _PARTS) if np.allclose(shares * n, np.round(shares * n), atol=TOLERANCE)), _PARTS)


def staying(state: PlacementState, node: int) -> Options:
    """Return an option for each job that stays on a node, of a family of its own; none takes any of the room.

    It costs what the job does if that is due to who is here, and else nothing: the job spans nodes or shares a GPU.
    """
    batch, rows = state.batch, list[OptionRow]()
    kind = int(batch.kind[node])
    for j, (a, p) in state.at[node].items():
        if a:
            degree, adds = sum(w for w, _ in state.rows[j].values()), batch.jobs[j].collective == "hierarchical"
            sync = _sync(batch, j, kind, degree, a, p)
            rows.append(OptionRow(len(rows), j, degree, a, p, len(state.rows[j]) > 1, *sync, adds))
    zero = np.zeros(len(rows))
    found = replace(_columns(batch, kind, rows), gpus=zero.astype(np.int64), cpu=zero, memory=zero)
    every = tuple(range(len(rows)))
    slower = found.slower(every, batch.host)
    cost, real = (
        found.cost(slice(None), slower, int(found.split.sum())),
        np.array([state.cost[row.job] for row in rows]),
    )
    return replace(found, rate=np.where(~found.split & np.isclose(cost, real, rtol=1e-9, atol=0.0), found.rate, 0.0))


def within(options: Options, gpus: int) -> Options:
    """Return the options on a node of which so many parts of GPUs are idle."""
    return _some(options, options.gpus <= gpus, (gpus, *options.room[1:]))


def _fitting(options: Options) -> Options:
    _, cpu, memory = options.room
    return _some(options, (options.cpu <= cpu) & (options.memory <= memory), options.room)


def _some(options: Options, kept: BoolArray, room: tuple[int, float, float]) -> Options:
    columns = {x.name: getattr(options, x.name)[kept] for x in fields(options) if x.name != "room"}
    return Options(**columns, room=room)


def joined(first: Options, second: Options) -> Options:
    """Return the options of both on the node of the first."""
    names = [x.name for x in fields(first) if x.name != "room"]
    columns = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in names}
    return Options(**columns, room=first.room)


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


class Pricing:
    """Searches the patterns of a kind of node, many times at other prices."""

    def __init__(self, batch: PreparedBatch, many: Indices, apart: BoolArray, options: Options) -> None:
        """Take a kind of node; `apart`: families that cannot meet on a node, bool (f, f)."""
        self.options = options
        table = np.stack(
            [options.cpu, options.memory, options.rate, options.compute, options.hidden, options.fixed, options.nic]
        ).astype(np.float64)
        marks = np.stack(
            [options.family, options.gpus, options.model, options.split, options.adds, options.workers > 0]
        ).astype(np.int64)
        self.kind = PricedKind(
            table, marks, np.array(batch.host, dtype=np.float64, order="C"),
            np.array(apart, dtype=np.bool_, order="C"), np.array(many, dtype=np.int64),
            np.array(options.room, dtype=np.float64),
        )  # fmt: skip
        self.work = PricingSearch(table.shape[1], len(many), len(batch.host))

    def search(
        self,
        run: Run,
        pays: FloatArray,
        limit: float,
        most: int,
        keep_best: bool,
        steps: int,
    ) -> tuple[FloatArray, FloatArray, Indices, bool]:
        """Find the patterns whose cost less what their jobs pay is below `limit`.

        Args:
            pays: what is paid for each option.
            most: keep so many.
            keep_best: whether of more the best are kept, and else the search ends there.

        Returns:
            Reduced costs (n,), costs (n,), options (n, d) with -1 behind the last, and whether none can be missing.
        """
        if not len(pays):
            return np.zeros(0), np.zeros(0), np.zeros((0, 1), dtype=np.int64), True
        over, paid = np.zeros(1, dtype=np.uint8), np.array(pays, dtype=np.float64)
        reduced, cost, chosen, complete = interruptible(
            lambda: search(self.kind, self.work, paid, limit, most, keep_best, steps, over),
            lambda: over.fill(1),
            lambda: run.stopped,
        )
        order = np.argsort(reduced, kind="stable")
        return reduced[order], cost[order], chosen[order], complete


class OptionRow(NamedTuple):
    """An option of a job; see `Options`."""

    family: int
    job: int
    degree: int
    workers: int
    servers: int
    split: bool
    fixed: float
    nic: float
    adds: bool


def _columns(batch: PreparedBatch, kind: int, rows: list[OptionRow]) -> Options:
    table, node = np.array(rows, dtype=np.float64).reshape(-1, len(OptionRow._fields)).T, int(batch.sample[kind])
    family, j, degree, workers, servers = table[:5].astype(np.int64)
    cpu, memory = workers * batch.worker[:2, j] + servers * batch.server[:2, j]
    has = batch.amounts[:2, node] * (1 + TOLERANCE)
    return Options(
        family, workers, servers, split=table[5] > 0, gpus=workers * batch.each[j], cpu=cpu, memory=memory,
        rate=batch.weight[j] * batch.best[j] / degree * workers / degree, compute=batch.alone[j, kind],
        hidden=1 - batch.overlap[j], model=batch.model[j].astype(np.int64), fixed=table[6], nic=table[7],
        adds=table[8] > 0, cover=workers / degree,
        room=(int(batch.problem.fleet.gpus[node]), float(has[0]), float(has[1])),
    )  # fmt: skip


def _sync(batch: PreparedBatch, j: int, kind: int, degree: int, a: int, p: int) -> tuple[float, float]:
    """Return the seconds inside the node and those for each gang on its NIC, both as little as they can be."""
    job, size = batch.jobs[j], float(batch.gradient[j])
    link, nic, split = batch.link[int(batch.sample[kind])], batch.bandwidth[0], a < degree or p < batch.jobs[j].servers
    if job.collective == "ps":
        through = size * (a * (job.servers - p) + p * (degree - a)) / job.servers / nic
        return size * a * p / job.servers / link, through if split else 0.0
    if job.collective == "hierarchical":
        return ring_bytes(a, size) / link if a > 1 else 0.0, _phases(batch, j, degree, size) / nic if split else 0.0
    moved = ring_bytes(degree, size) if job.collective == "ring" else 2 * size * (degree > 1)
    return moved / link if a > 1 else 0.0, moved / nic if split else 0.0


def _phases(batch: PreparedBatch, j: int, degree: int, size: float) -> float:
    """Return the bytes of the phases that a split gang sends through NICs at least; two of n and m no less than n m."""
    room = int(batch.room[j].max(initial=1))
    return ring_bytes(max(2, -(-degree // max(1, room))), size)
