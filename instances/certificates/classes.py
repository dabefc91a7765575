"""What plans of a graph have in common: classes of ops that share a device, and where each of them can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

from ..graph import grouped
from ..partition import precedence
from .exact import SLACK, exact


@dataclass(frozen=True, slots=True, eq=False)
class OpClasses:
    """The classes of ops of a problem, G of them, by device type.

    Attributes:
        of: the class of each op, numbered as they first come.
        count: devices of each type; of the hosts of a latency problem, which run any number of ops at once, `None`.
        capacity: bytes of a device of each type that a plan may use, `inf` if unlimited.
        options: of each class, where it can be: (type, device-seconds that it takes, device-bytes that it needs).
    """

    of: tuple[int, ...]
    count: tuple[int | None, ...]
    capacity: tuple[Fraction | float, ...]
    options: tuple[tuple[tuple[int, Fraction, Fraction], ...], ...]


def numbered(colocation: list[int]) -> tuple[int, ...]:
    """Return the class of each op: one for each number from 0 on, one for each op without."""
    known: dict[tuple[bool, int], int] = {}
    return tuple(known.setdefault((c >= 0, c if c >= 0 else i), len(known)) for i, c in enumerate(colocation))


@lru_cache(maxsize=8)
def classes_of(problem: Any) -> OpClasses:
    """Return the classes of a problem of a graph.

    A replica of a stage at degree k is k devices that take as long, so a class takes k times its seconds on each.
    """
    graph, cluster = problem.graph, problem.cluster
    of = numbered(graph.colocation.tolist())
    members = grouped(((g, i) for i, g in enumerate(of)), max(of) + 1)
    count: list[int | None] = cluster.counts().tolist()
    capacity = [inf if kind.memory is None else Fraction(kind.memory) * (1 + SLACK) for kind in cluster.device_types]
    if problem.objective == "stages":
        menu = problem.options()
        rows = [(problem.kind, k) for k in menu.degree.tolist()]
        seconds, memory = exact(problem.seconds()), exact(problem.need()[0])
    else:
        rows = [(t, 1) for t in range(len(count))]
        seconds, memory = exact(problem.time()), exact(graph.memory[None]) * len(rows)
        if problem.objective == "latency":
            count = [None if kind.host and n else n for n, kind in zip(count, cluster.device_types, strict=True)]
    options = []
    for ops in members:
        found = []
        for (t, k), own, size in zip(rows, seconds, memory, strict=True):
            takes, needs = sum(own[i] for i in ops), sum(size[i] for i in ops)
            if count[t] != 0 and takes != inf and needs <= capacity[t]:
                found.append((t, k * Fraction(takes), k * Fraction(needs)))
        options.append(tuple(found))
    return OpClasses(of, tuple(count), tuple(capacity), tuple(options))


def earlier(problem: Any, of: tuple[int, ...]) -> list[int]:
    """Return of each class, as bits, what comes before it in a pipeline, and itself.

    What comes before has fewer before itself, or goes with it.
    """
    above = [1 << g for g in range(max(of) + 1)]
    pairs = sorted({(of[u], of[v]) for u, v in zip(*(x.tolist() for x in precedence(problem.graph)), strict=True)})
    before: list[int] = []
    while above != before:
        before = list(above)
        for a, b in pairs:
            above[b] |= above[a]
    return above


def bits(mask: int) -> Iterator[int]:
    """Yield the classes of a set, a bit for each."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1
