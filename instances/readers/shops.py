"""Job shops as step problems: machines are devices of a type each, ops the operations, without transfers or memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from os import PathLike

import numpy as np

from ..cluster import Cluster, DeviceType
from ..errors import InstanceError, in_file, unknown
from ..graph import OpGraph
from ..intake import read_text
from ..outlet import write_whole
from ..partition import StepProblem
from .fields import as_number, whole_number

Path = str | PathLike[str]
Operation = dict[str, float]
"""Seconds by work centre that can do it."""


def shop(jobs: Sequence[tuple[str, Sequence[Operation]]], centres: Sequence[tuple[str, int]]) -> StepProblem:
    """Return a shop: each job, (name, operations), is a chain; each work centre, (name, machines), a device type."""
    kinds = tuple(name for name, _ in centres)
    ops = [(f"{name}.{i}", op) for name, chain in jobs for i, op in enumerate(chain)]
    time, zero = np.full((len(kinds), len(ops)), np.inf), np.zeros(len(ops))
    for v, (_, op) in enumerate(ops):
        for centre, seconds in op.items():
            time[kinds.index(centre), v] = seconds
    ends = np.cumsum([len(chain) for _, chain in jobs])
    source = np.setdiff1d(np.arange(len(ops)), ends - 1)
    graph = OpGraph(
        tuple(name for name, _ in ops), kinds, time, zero, zero, zero, source, source + 1, np.zeros(len(source))
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
    kinds, able = [kind.name for kind in problem.cluster.device_types], np.isfinite(time)
    for v in np.flatnonzero(able.sum(axis=0) != 1):
        raise InstanceError("graph.time", f"op {graph.names[v]!r} has {able[:, v].sum()} work centres, not one")
    found, of = list[list[tuple[str, str, float]]](), able.argmax(axis=0).tolist()
    for op in sorted(first):
        chain = [op]
        while chain[-1] in after:
            chain.append(after[chain[-1]])
        found.append([(graph.names[v], kinds[of[v]], float(time[of[v], v])) for v in chain])
    return found


def read_jobshop(path: Path, shop: str | None = None) -> StepProblem:
    """Read a job shop as people write it; its objective is the makespan.

    A line has the numbers of jobs and machines. Standard (Fisher and Thompson 1963): then a line a job with machine,
    from 0 on, and time of each operation. Taillard (1993): then a row of times a job and a row of machines a job, from
    1 on, with or without the words ``Times`` and ``Machines``. Flexible (Brandimarte 1993), if the file ends with
    ``.fjs``: then a line a job with the number of operations, and of each the number of machines that can do it, and
    machine, from 1 on, and time on each. Lines that begin with ``#`` or ``+`` are comments, lines of words titles.

    Args:
        path: the file.
        shop: its name, in a file with a line ``instance NAME`` before each, as the OR-Library's.

    Raises:
        InstanceError: naming file, line, field and value.
    """
    text = read_text(path)
    with in_file(path):
        return (parse_flexible if str(path).endswith(".fjs") else parse_jobshop)(text, shop=shop)


def recognises(text: str) -> bool:
    """Return whether a text, or the instances in it, begin with the numbers of jobs and machines."""
    found = [x for x in _instances(text).values() if len(x) > 1]
    return bool(found) and all(len(x[0]) > 1 and all(word.isdigit() for _, word in x[0]) for x in found)


def parse_jobshop(text: str, *, shop: str | None = None) -> StepProblem:
    """Return the job shop of a text in the standard format or Taillard's, see `read_jobshop`."""
    n, m, lines = _head(text, shop)
    rows = [row for row in lines if not row[0][1].lower().startswith(("times", "machines"))]
    taillard = len(rows) == 2 * n
    if len(rows) < len(lines) and not lines[0][0][1].lower().startswith("times"):
        raise InstanceError(f"line {lines[0][0][0]}", "times come before machines")
    if len(rows) != n and not taillard:
        raise InstanceError("content", f"has {len(rows)} rows where {n} jobs have {n}, or {2 * n} as Taillard has them")
    for row in rows:
        if len(row) != m * (2 - taillard):
            raise InstanceError(f"line {row[0][0]}", f"has {len(row)} numbers where {m * (2 - taillard)} are expected")
    jobs = [(rows[n + j], rows[j]) if taillard else (rows[j][::2], rows[j][1::2]) for j in range(n)]
    return _shop([[_operation([x], m, int(taillard)) for x in zip(*job, strict=True)] for job in jobs], m)


def parse_flexible(text: str, *, shop: str | None = None) -> StepProblem:
    """Return the flexible job shop of a text, see `read_jobshop`."""
    n, m, rows = _head(text, shop)
    if len(rows) != n:
        raise InstanceError("content", f"has {len(rows)} rows where {n} jobs are announced")
    jobs = []
    for row in rows:
        job, at, i = list[Operation](), f"line {row[0][0]}", 1
        for _ in range(whole_number(row[0][1], f"{at}: operations", 1, 9)):
            ways = whole_number(row[i][1] if i < len(row) else "", f"{at}: machines of operation", 1, 9)
            job.append(_operation([*zip(row[i + 1 :: 2], row[i + 2 :: 2], strict=False)][:ways], m, 1))
            i += 1 + 2 * ways
        if i != len(row):
            raise InstanceError(at, f"has {len(row)} numbers where {i} are expected")
        jobs.append(job)
    return _shop(jobs, m)


Word = tuple[int, str]
"""The number of its line, and the word."""


def _instances(text: str) -> dict[str, list[list[Word]]]:
    """Return the lines of each instance by its name, titles and comments aside; nameless if none has one."""
    found: dict[str, list[list[Word]]] = {"": []}
    lines = found[""]
    for at, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if len(words) == 2 and words[0] == "instance":
            found.pop("", None)
            lines = found[words[1]] = []
        elif words and words[0][0] not in "#+" and (lines or not isnan(as_number(words[0]))):
            lines.append([(at, word) for word in words])
    return found


def _head(text: str, shop: str | None) -> tuple[int, int, list[list[Word]]]:
    """Return the numbers of jobs and machines of an instance, and its other lines."""
    found = _instances(text)
    if shop is None and len(found) > 1:
        raise InstanceError("shop", f"which of {', '.join(found)}?")
    if shop is not None and shop not in found:
        one = f"{shop!r} does not apply: the file has one without a name"
        raise InstanceError("shop", one if "" in found else unknown(shop, found))
    lines = found[next(iter(found)) if shop is None else shop]
    if not lines:
        raise InstanceError("content", "there is no line with the numbers of jobs and machines")
    if len(lines[0]) < 2:
        raise InstanceError(f"line {lines[0][0][0]}", f"{lines[0][0][1]!r} is not the numbers of jobs and machines")
    n, m = (
        whole_number(x, f"line {at}: {of}", 1, 9) for of, (at, x) in zip(("jobs", "machines"), lines[0], strict=False)
    )
    return n, m, lines[1:]


def _shop(jobs: list[list[Operation]], m: int) -> StepProblem:
    return shop([(f"job{j}", job) for j, job in enumerate(jobs)], [(f"machine{k}", 1) for k in range(m)])


def _operation(ways: list[tuple[Word, Word]], m: int, base: int) -> Operation:
    found = dict[str, float]()
    for (at, machine), (there, time) in ways:
        k = whole_number(machine, f"line {at}: machine", base, 9) - base
        if k >= m or f"machine{k}" in found:
            why = f"is not one of {base} to {m - 1 + base}" if k >= m else "is there twice"
            raise InstanceError(f"line {at}: machine", f"{machine!r} {why}")
        if not 0 <= as_number(time) < 1e300:
            raise InstanceError(f"line {there}: time", f"{time!r} is not a number of 0 or more")
        found[f"machine{k}"] = float(time)
    return found


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
