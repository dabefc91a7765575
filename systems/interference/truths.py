"""What a cluster really does to jobs that share it: drawn from a seed, or measured by others; no policy sees it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import (
    AMOUNT,
    NONE,
    POSITIVE,
    TIMES,
    BoolArray,
    Checked,
    FloatArray,
    IntArray,
    array,
    check_fields,
    require,
    require_number,
)
from gangplan.instances.errors import unknown
from gangplan.instances.intake import as_float, csv_rows, read_text
from gangplan.instances.placement import Fleet
from gangplan.instances.readers.gavel import read_throughputs
from gangplan.instances.readers.measured import Pairs, read_measured
from gangplan.simulator.snapshots import Long, Snapshots

from .speeds import CONTENTION, LINKS, PAIRS, all_speeds

RESOURCES = ("GPUs", "cores", "bytes of host memory")
WORKER, SERVER = (1.0, 2.0, 8e9), (0.0, 4.0, 8e9)
"""What a worker and a parameter server of the 2019 testbed occupy, in `RESOURCES`."""


@dataclass(frozen=True, slots=True, eq=False)
class JobTypes(Checked):
    """What everybody knows of K types of job.

    Attributes:
        names: unique.
        batch: samples a worker takes in a step, float64 (K,).
        batches: of all workers together that make an epoch, float64 (K,).
        compute: seconds of a step of one worker, as profiled alone, float64 (K,).
        gradient: bytes of the model, float64 (K,).
    """

    names: tuple[str, ...] = field(metadata={"unique": True})
    batch: FloatArray = field(metadata=array("names", holds=POSITIVE))
    batches: FloatArray = field(metadata=array("names", holds=POSITIVE))
    compute: FloatArray = field(metadata=array("names", holds=POSITIVE))
    gradient: FloatArray = field(metadata=array("names", holds=AMOUNT))


_TESTBED = {  # samples/s with workers and servers apart, mixed, together; ms of compute; MB; batches an epoch; batch
    "ResNet-50": (20.5, 40.9, 67.2, 449, 102.2, 115, 32),
    "VGG-16": (11, 17.5, 59.8, 535, 553.4, 115, 32),
    "ResNeXt-110": (374, 381.2, 567.2, 226, 6.92, 390, 128),
    "Inception-BN": (116, 149.9, 157, 815, 42.1, 120, 128),
    "Seq2Seq": (169, 231.5, 856, 75, 36.5, 780, 64),
    "CTC": (51, 68, 85.5, 585, 24, 193, 50),
    "DSSM": (405, 388.9, 450.2, 567, 6, 349, 256),
    "WLM": (80, 161.2, 1036.4, 154, 19.2, 165, 160),
}
_COLUMNS = np.array(list(_TESTBED.values()), dtype=float).T
TESTBED = JobTypes(tuple(_TESTBED), _COLUMNS[6], _COLUMNS[5], _COLUMNS[3] / 1e3, _COLUMNS[4] * 1e6)
"""The eight types of Harmony's testbed (Bao, Peng, Wu; INFOCOM 2019)."""
MEASURED: FloatArray = _COLUMNS[6] / _COLUMNS[:3]
"""Seconds of their steps with two workers and two parameter servers: on two servers, the workers on one of them; on two
servers, one of each on both; on one server, float64 (3, 8)."""


@dataclass(frozen=True, slots=True, eq=False)
class TrueJobs:
    """What owners submit, n jobs.

    Attributes:
        types: what they may be.
        submit: seconds, ascending, float64 (n,).
        kind: index into the types, int32 (n,).
        workers: how many, int32 (n,).
        servers: parameter servers, int32 (n,); 0 if the workers synchronise by a ring all-reduce.
        epochs: to be done, float64 (n,).
        worker, server: what one of each occupies, in `RESOURCES`, float64 (n, 3); by default as in the testbed.
    """

    types: JobTypes
    submit: FloatArray = field(metadata=array(None, holds=TIMES, ascending=True))
    kind: IntArray = field(metadata=array("submit", holds=AMOUNT))
    workers: IntArray = field(metadata=array("submit", holds=POSITIVE))
    servers: IntArray = field(metadata=array("submit", holds=AMOUNT))
    epochs: FloatArray = field(metadata=array("submit", holds=POSITIVE))
    worker: FloatArray = field(default=NONE, metadata=array("submit", None, holds=AMOUNT))
    server: FloatArray = field(default=NONE, metadata=array("submit", None, holds=AMOUNT))

    def __post_init__(self) -> None:
        for name, usual in (("worker", WORKER), ("server", SERVER)):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.tile(usual, (len(self.submit), 1)))
        check_fields(self)
        require(self.kind < len(self.types.names), self.kind, "kind", f"is none of {len(self.types.names)} types")
        for name in ("worker", "server"):
            need = getattr(self, name)
            require(np.array([need.shape[1] == len(RESOURCES)]), np.array([need.shape[1]]), name, "resources, not 3")

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def alike(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first of all jobs of the same type that ask for the same, (g,), and which of these each is like, (n,)."""
        asked = np.column_stack([self.kind, self.workers, self.servers, self.worker, self.server])
        _, first, group = np.unique(asked, axis=0, return_index=True, return_inverse=True)
        return first, group.reshape(-1)

    @property
    def profiled(self) -> FloatArray:
        """Seconds that each job would take by what was profiled alone, without synchronisation, float64 (n,)."""
        step = (self.types.compute * self.types.batches)[self.kind]
        return np.asarray(self.epochs * step / self.workers)


_WORKER, _SERVER = (0.33, 0.15), (0.15, 0.24)
"""What a worker, and a parameter server, adds to a worker and to a parameter server on its server, in the mean."""
_SPREAD = 1.2
"""Of the logarithm of what types suffer and exert. A worker beside a worker and a parameter server keeps 0.46, 0.65,
0.81, 0.91 and 0.95 of its speed at the quantiles 0.1, 0.25, 0.5, 0.75 and 0.9; DeepShare's pairs kept 0.53, 0.64, 0.82,
0.96 and 1.0 (its jobs shared links)."""
_UPLINK = (2.0, 4.0)
"""Bandwidth of an uplink over that of a NIC, from and to."""


SPREADS = 5
"""Numbers of servers of which a table of pairs on links knows speeds: up to 1, 2, 4, 8 and more."""


class Hidden(NamedTuple):
    """A truth: K types, m servers, X links of L levels, Q rows of a table.

    Attributes:
        mode: `CONTENTION`, or by a table of `PAIRS` on a server, or of pairs on `LINKS`.
        link: by which link a server's traffic leaves its group of each level, the server itself first, (L, m).
        step: seconds of a step on one server, alone, (K,).
        sync: seconds that are added when the busiest link carries the model once, and twice, in each direction, (K, 2).
        batches: that make an epoch, (K,).
        host: what a task adds to the time of another on its server, as a share of it: row the one that suffers, column
            the one that is there, workers of each type and then parameter servers, (2 K, 2 K).
        socket: by how much that is multiplied on each server, (m,).
        duty: share of the time that a job of each type loads the links that it crosses, (K,).
        quality: bandwidth of each link, 1 being that of which `sync` was measured, (X,).
        row: of the table, for a type on so many servers, (K, SPREADS).
        kept: share of its speed that the row keeps beside the column, (Q, Q).
        alone: seconds of a step of each row of the table alone, (Q,).
    """

    mode: int
    link: Long
    step: FloatArray
    sync: FloatArray
    batches: FloatArray
    host: FloatArray
    socket: FloatArray
    duty: FloatArray
    quality: FloatArray
    row: Long
    kept: FloatArray
    alone: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class HiddenTruth:
    """A truth for the compiled simulator; `Truth` is what it is to others."""

    hidden: Hidden

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return the epochs a second of each job, float64 (n,)."""
        return all_speeds(self.hidden, now)

    def alone(self) -> HiddenTruth:
        """Return the truth without interference: every job is as fast where it is as if nobody else were there."""
        h = self.hidden
        return HiddenTruth(h._replace(host=0.0 * h.host, duty=0.0 * h.duty, kept=np.ones_like(h.kept)))

    @property
    def apart(self) -> bool:
        """Whether no job slows another down."""
        h = self.hidden
        return not (h.host.any() or h.duty.any() or (h.kept != 1.0).any())

    def at(self, servers: slice) -> HiddenTruth:
        """Return the truth of some servers and of the links that their jobs cross, if nobody else were there."""
        h, link = self.hidden, self.hidden.link[:, servers]
        known, at = np.unique(link, return_inverse=True)
        there = at.reshape(link.shape).astype(np.int64)
        return HiddenTruth(h._replace(link=there, socket=h.socket[servers], quality=h.quality[known]))


def contention(fleet: Fleet, seed: int) -> HiddenTruth:
    """Draw a truth of the form of the placement cost model, with the measured speeds where a job is alone.

    Drawn from the seed are what workers and parameter servers of each type do to those on their server (by two kinds
    of pressure, PCIe and host memory), how well each server's sockets keep them apart, the duties of the types on links
    (about their share of the time, alone), and the uplinks.
    """
    require_number(seed, "seed", whole=True)
    rng = np.random.default_rng([seed, 21])
    k, link = len(TESTBED.names), links(fleet)
    suffer, exert = rng.lognormal(0.0, _SPREAD, (2, 2, 2 * k))  # by the kind of pressure
    host = np.einsum("pa,pb->ab", suffer, exert) / (2 * np.exp(_SPREAD**2))
    host *= np.kron(np.array([_WORKER, _SERVER]).T, np.ones((k, k)))
    sync = np.maximum(MEASURED[[1, 0]] - MEASURED[2], 0.0)
    natural = sync[1] / MEASURED[0]
    duty = np.clip(natural ** rng.uniform(0.3, 1.0) * rng.lognormal(0.0, 0.3, k), 0.05, 1.0)
    quality = np.concatenate([np.ones(fleet.n_nodes), rng.uniform(*_UPLINK, link.max() + 1 - fleet.n_nodes)])
    socket = rng.uniform(0.5, 1.5, fleet.n_nodes)
    known = {"step": MEASURED[2].copy(), "sync": np.ascontiguousarray(sync.T), "host": np.minimum(host, 2.0)}
    return HiddenTruth(hidden(CONTENTION, link, TESTBED, **known, socket=socket, duty=duty, quality=quality))


def links(fleet: Fleet) -> Long:
    """Return by which link the traffic of each server leaves its group of each level, int64 (L, m): first its own."""
    rows, begin = [np.arange(fleet.n_nodes)], fleet.n_nodes
    for group in fleet.topology.group[: len(fleet.topology.levels) - 1]:
        rows.append(begin + group)
        begin += int(group.max()) + 1
    return np.array(rows, dtype=np.int64)


def hidden(mode: int, link: Long, types: JobTypes, **known: Any) -> Hidden:
    """Return a truth of a mode, with what is known of it and, of the rest, nothing that slows anybody down."""
    k, m, x = len(types.names), link.shape[1], int(link.max()) + 1
    usual = Hidden(
        mode=mode,
        link=link,
        step=types.compute.copy(),
        sync=np.zeros((k, 2)),
        batches=types.batches.copy(),
        host=np.zeros((2 * k, 2 * k)),
        socket=np.ones(m),
        duty=np.zeros(k),
        quality=np.ones(x),
        row=np.zeros((k, SPREADS), dtype=np.int64),
        kept=np.zeros((0, 0)),
        alone=np.zeros(0),
    )
    return usual._replace(**known)


EPOCH = 60.0
"""Seconds of an epoch of these types, alone: their sources count steps."""
_GANGS = (1, 2, 4, 8)
_LINK_KEY = re.compile(r"(.+),(\d{1,4}),(\d{1,4})")


def gpu_pairs(path: str | PathLike[str], fleet: Fleet, gpu: str) -> tuple[JobTypes, HiddenTruth]:
    """Return Gavel's models as types of job, one for each number of workers measured, and the truth of sharing a GPU.

    Args:
        path: ``simulation_throughputs.json``.
        fleet: servers of one GPU; at most two workers share it if each has half of it.
        gpu: k80, p100 or v100.

    Raises:
        InstanceError: naming the file, the place and the value found.
    """
    known = {pairs.name: pairs for pairs in read_measured(path) if isinstance(pairs, Pairs)}
    if gpu not in known:
        raise InstanceError("gpu", unknown(gpu, known))
    pairs, step, row = known[gpu], dict[str, float](), list[int]()
    for (on, model, workers), speed in read_throughputs(path).speed.items():
        if on == gpu and workers in _GANGS and model in pairs.jobs and speed > 0:
            step[f"{model} x{workers}"] = workers / speed
            row.append(pairs.jobs.index(model))
    types, rows = _types(step), np.repeat(np.array(row, dtype=np.int64)[:, None], SPREADS, axis=1)
    known_of = {"row": rows, "kept": filled(pairs.kept), "alone": pairs.alone}
    return types, HiddenTruth(hidden(PAIRS, links(fleet), types, **known_of))


def link_pairs(folder: str | PathLike[str], fleet: Fleet) -> tuple[JobTypes, HiddenTruth]:
    """Return DeepShare's gangs as types of job, and the truth in which those that share a link keep what it measured.

    A gang on k servers is that of the smallest number of nodes measured that is no less than k, or of the largest. On
    one server it is as fast as it was on any number, and shares no link.

    Args:
        folder: with ``shared_thp_ratio.csv`` and ``isolated_thp.csv``.
        fleet: servers that several gangs may share.

    Raises:
        InstanceError: naming the file, the place and the value found.
    """
    (pairs,) = read_measured(Path(folder) / "shared_thp_ratio.csv")
    assert isinstance(pairs, Pairs)
    rows = [row for _, row in csv_rows(read_text(Path(folder) / "isolated_thp.csv"))]
    speed = {row[0]: as_float(row[1], f"isolated_thp.csv: {row[0]}", positive=True) for row in rows[1:]}
    gangs: dict[str, dict[int, int]] = {}
    for i, name in enumerate(pairs.jobs):
        match = _LINK_KEY.fullmatch(name)
        if match is None or name not in speed:
            raise InstanceError("isolated_thp.csv", f"has no row for {name!r}")
        model, workers, nodes = match.groups()
        gangs.setdefault(f"{model} x{workers}", {})[int(nodes)] = i
    alone = np.array([int(name.split(",")[1]) / speed[name] for name in pairs.jobs])
    best = {name: min(float(alone[i]) for i in by.values()) for name, by in gangs.items()}
    row = np.zeros((len(gangs), SPREADS), dtype=np.int64)
    for k, by in enumerate(gangs.values()):
        for at in range(1, SPREADS):
            row[k, at] = by[min((n for n in by if n >= 2**at), default=max(by))]
    size = len(alone)
    row[:, 0] = size + np.arange(len(gangs))  # on one server
    table = np.ones((size + len(gangs), size + len(gangs)))
    table[:size, :size] = filled(pairs.kept)
    types, alone = _types(best), np.append(alone, list(best.values()))
    return types, HiddenTruth(hidden(LINKS, links(fleet), types, row=row, kept=table, alone=alone))


def gangs_of(names: Iterable[str]) -> list[int]:
    """Return the workers of each type of these truths, by its name."""
    return [int(name.rpartition(" x")[2]) for name in names]


def filled(kept: FloatArray) -> FloatArray:
    """Return a table with the product of row and column means, over the mean of all, where nothing was measured."""
    known: BoolArray = np.isfinite(kept)
    logs = np.log(np.where(known, kept, 1.0))
    whole = logs.sum() / known.sum()
    by_row, by_column = (logs.sum(axis=x) / np.maximum(known.sum(axis=x), 1) for x in (1, 0))
    guess = np.minimum(np.exp(by_row[:, None] + by_column - whole), 1.0)
    return np.ascontiguousarray(np.where(known, kept, guess))


def _types(step: dict[str, float]) -> JobTypes:
    """Return types by the seconds of a step of a worker; nothing is known of their batches and bytes."""
    seconds, ones = np.array(list(step.values())), np.ones(len(step))
    return JobTypes(tuple(step), ones, EPOCH * np.array(gangs_of(step)) / seconds, seconds, ones)
