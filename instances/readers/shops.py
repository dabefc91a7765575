"""Job shops as step problems: machines are devices of a type each, ops the operations, without transfers or memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from os import PathLike

import numpy as np

from ..cluster import Cluster, DeviceType
from ..errors import InstanceError, in_file
from ..graph import OpGraph
from ..intake import read_text
from ..outlet import write_whole
from ..partition import StepProblem
from .fields import as_number, whole_number

Path = str | PathLike[str]
Operation = tuple[str, float]
"""Work centre and seconds."""


def shop(jobs: Sequence[tuple[str, Sequence[Operation]]], centres: Sequence[tuple[str, int]]) -> StepProblem:
    """Return a shop: each job, (name, operations), is a chain; each work centre, (name, machines), a device type."""
    kinds = tuple(name for name, _ in centres)
    ops = [(f"{name}.{i}", *op) for name, chain in jobs for i, op in enumerate(chain)]
    time, zero = np.full((len(kinds), len(ops)), np.inf), np.zeros(len(ops))
    for v, (_, centre, seconds) in enumerate(ops):
        time[kinds.index(centre), v] = seconds
    ends = np.cumsum([len(chain) for _, chain in jobs])
    source = np.setdiff1d(np.arange(len(ops)), ends - 1)
    graph = OpGraph(
        tuple(name for name, _, _ in ops), kinds, time, zero, zero, zero, source, source + 1, np.zeros(len(source))
    )
    return StepProblem(graph, Cluster.flat(*((DeviceType(name), count) for name, count in centres), bandwidth=1.0))


def chains(problem: StepProblem) -> list[list[tuple[str, str, float]]]:
    """Return the jobs of a shop as chains of (op, work centre, seconds), in the order of their first ops.

    Raises:
        InstanceError: if the problem is no shop: an op has several successors, predecessors or device types, or
            occupies memory, or sends anything.
    """
    graph, time = problem.graph, problem.time()
    after, first = dict(zip(graph.source.tolist(), graph.target.tolist(), strict=True)), set(range(graph.n_ops))
    for what, ends in (("successors", graph.source), ("predecessors", graph.target)):
        twice = np.flatnonzero(np.bincount(ends, minlength=graph.n_ops) > 1)
        if len(twice):
            raise InstanceError("graph", f"op {graph.names[twice[0]]!r} has several {what}: no job of a shop has")
    first -= set(graph.target.tolist())
    for field, values in (("memory", graph.memory), ("edge_bytes", graph.edge_bytes)):
        if values.any():
            raise InstanceError(f"graph.{field}", f"{values.max():g} is not 0, as it is in a shop")
    found: list[list[tuple[str, str, float]]] = []
    for op in sorted(first):
        chain: list[tuple[str, str, float]] = []
        v: int | None = op
        while v is not None:
            able = np.flatnonzero(np.isfinite(time[:, v]))
            if len(able) != 1:
                raise InstanceError("graph.time", f"op {graph.names[v]!r} has {len(able)} work centres, not one")
            kind = int(able[0])
            chain.append((graph.names[v], problem.cluster.device_types[kind].name, float(time[kind, v])))
            v = after.get(v)
        found.append(chain)
    return found


def read_jobshop(path: Path) -> StepProblem:
    """Read a job shop in the standard format, or as Taillard wrote it; its objective is the makespan.

    Standard (Fisher and Thompson 1963, in the OR-Library): a line with the numbers of jobs and machines, then a line a
    job with machine, from 0 on, and time of each operation. Taillard (1993): that line, ``Times``, a row a job,
    ``Machines``, a row a job, from 1 on. Lines that begin with ``#`` are comments.

    Raises:
        InstanceError: naming file, line, field and value.
    """
    text = read_text(path)
    with in_file(path):
        return parse_jobshop(text)


def parse_jobshop(text: str) -> StepProblem:
    """Return the job shop of a text, see `read_jobshop`."""
    lines = [(i, line.split()) for i, line in enumerate(text.splitlines(), 1)]
    lines = [(i, words) for i, words in lines if words and not words[0].startswith("#")]
    if lines and isnan(as_number(lines[0][1][0])):  # a title
        lines = lines[1:]
    if not lines:
        raise InstanceError("content", "there is no line with the numbers of jobs and machines")
    at, head = lines[0]
    if len(head) < 2:
        raise InstanceError(f"line {at}", f"{' '.join(head)!r} is not the numbers of jobs and machines")
    n, m = (whole_number(x, f"line {at}: {name}", 1, 9) for x, name in zip(head, ("jobs", "machines"), strict=False))
    rows = lines[1:]
    taillard = bool(rows) and rows[0][1][0].lower().startswith("times")
    if taillard:
        cut = next((k for k, (_, words) in enumerate(rows) if words[0].lower().startswith("machines")), None)
        if cut is None:
            raise InstanceError("content", "has Times and no Machines")
        times, machines = _matrix(rows[1:cut], n, m, "time"), _matrix(rows[cut + 1 :], n, m, "machine")
        pairs = [[*zip(a, b, strict=True)] for a, b in zip(machines, times, strict=True)]
    else:
        pairs = [[*zip(row[::2], row[1::2], strict=True)] for row in _matrix(rows, n, 2 * m, "number")]
    jobs = [(f"job{j}", list(_operations(row, m, int(taillard)))) for j, row in enumerate(pairs)]
    return shop(jobs, [(f"machine{k}", 1) for k in range(m)])


Word = tuple[int, str]
"""A line and a word on it."""


def _matrix(rows: list[tuple[int, list[str]]], n: int, width: int, what: str) -> list[list[Word]]:
    if len(rows) != n:
        raise InstanceError("content", f"has {len(rows)} rows of a {what} each operation where {n} jobs are announced")
    for at, words in rows:
        if len(words) != width:
            raise InstanceError(f"line {at}", f"has {len(words)} numbers where {width} are expected")
    return [[(at, word) for word in words] for at, words in rows]


def _operations(row: list[tuple[Word, Word]], m: int, base: int) -> Iterator[Operation]:
    for (at, machine), (there, time) in row:
        k = whole_number(machine, f"line {at}: machine", base, 9) - base
        if k >= m:
            raise InstanceError(f"line {at}: machine", f"{machine!r} is not one of {base} to {m - 1 + base}")
        if not 0 <= as_number(time) < 1e300:
            raise InstanceError(f"line {there}: time", f"{time!r} is not a number of 0 or more")
        yield f"machine{k}", float(time)


def write_jobshop(problem: StepProblem, path: Path) -> None:
    """Write a job shop in the standard format, machines in the order of the device types.

    Raises:
        InstanceError: if it is no job shop in which each job visits each machine once, or the file cannot be written.
    """
    found, kinds = chains(problem), [kind.name for kind in problem.cluster.device_types]
    for chain in found:
        if sorted(centre for _, centre, _ in chain) != sorted(kinds):
            raise InstanceError("graph", f"the job of op {chain[0][0]!r} does not visit each machine once")
    if (problem.cluster.counts() != 1).any():
        raise InstanceError("cluster", "a work centre has several machines: write it for LEKIN")
    lines = [f"{len(found)} {len(kinds)}"]
    lines += [" ".join(f"{kinds.index(centre)} {seconds:.15g}" for _, centre, seconds in chain) for chain in found]
    write_whole({path: ("\n".join(lines) + "\n").encode()})
