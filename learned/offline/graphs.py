"""The graph of a split: ops, types of devices and the whole, all in figures without units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cython
import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray, offsets

from ..graph.compiled import Graph, room
from ..graph.schema import Schema

if not cython.compiled:
    from gangplan.solvers.native import Floats, Ints

_OP = (
    *("seconds", "sent", "load", "memory", "share", "behind", "before", "slack", "place", "inputs", "readers"),
    *("slower", "able"),
)
_DEVICE = ("slowness", "part", "count", "fill")
_WHOLE = ("ops", "devices", "path", "sent", "memory", "edges", "hosts")
Index = NDArray[np.int64]
_RELATIONS = (
    ("op", "feeds", "op"),
    ("op", "reads", "op"),
    ("device", "runs", "op"),
    ("device", "serves", "whole"),
    ("op", "fills", "whole"),
    ("whole", "tells", "op"),
)
_LEAST = 0.1
"""What an edge without bytes counts, in mean edges."""
_MOST = 4.0
"""Ratios are cut off here."""
_APART = (1, 2, 4)
"""Places between two items of a chain that hear of each other."""


def schema(outputs: int) -> Schema:
    """Return what the graphs of a split are made of, with so many scores for each op."""
    return Schema({"op": _OP, "device": _DEVICE, "whole": _WHOLE}, _RELATIONS, "op", outputs)


class Split(NamedTuple):
    """What graphs are made of: n ops, or groups of them, T types of devices, m edges.

    Attributes:
        seconds: of each op on each type, infinite where it cannot run, float64 (T, n).
        devices: of each type, at least one of all, int64 (T,).
        memory, room: bytes of each op, float64 (n,), and of a device of each type, infinite if unlimited, (T,).
        source, target: ends of the edges, int64 (m,).
        sent: seconds under way of each edge, float64 (m,).
        order: a topological one, int64 (n,).
        place: of each op in the rule's own order, as a share of it, (n,).
        hosts: share of the devices that pay no transfers.
    """

    seconds: FloatArray
    devices: Index
    memory: FloatArray
    room: FloatArray
    source: Index
    target: Index
    sent: FloatArray
    order: Index
    place: FloatArray
    hosts: float


def paths(
    order: Ints, first: Ints, edge: Ints, target: Ints, own: Floats, sent: Floats, behind: Floats, before: Floats
) -> None:
    """Write the longest path from the start of each op to the end, and from the beginning to its start, float64 (n,).

    The edges of op v are `edge[first[v]:first[v + 1]]`; `behind` and `before` are 0 at first.
    """
    n, edges = len(order), len(edge)
    if {len(own), len(behind), len(before), len(first) - 1} != {n} or {len(target), len(sent)} != {edges}:
        raise ValueError(f"{len(own)} ops and {len(target)} edges are not the {n} and {edges} of the graph")
    for i in range(n):
        v = order[i]
        for x in range(first[v], first[v + 1]):
            e = edge[x]
            before[target[e]] = max(before[target[e]], before[v] + own[v] + sent[e])
    for i in range(n - 1, -1, -1):
        v = order[i]
        for x in range(first[v], first[v + 1]):
            e = edge[x]
            behind[v] = max(behind[v], sent[e] + behind[target[e]])
        behind[v] += own[v]


def graph(split: Split) -> Graph:
    """Return the graph of a split; nothing in it depends on names, or on the order of equal devices."""
    s, (types, n) = split, split.seconds.shape
    able = np.isfinite(s.seconds)
    best = np.where(able.any(axis=0), np.where(able, s.seconds, np.inf).min(axis=0), 0.0)
    part = s.devices / max(s.devices.sum(), 1)
    mean, even = _unit(best), max(float(best.sum()) / s.devices.sum(), 1e-300)
    behind, before = np.zeros(n), np.zeros(n)
    by_source = np.argsort(s.source, kind="stable")
    paths(s.order, offsets(np.bincount(s.source, minlength=n)), by_source, s.target, best, s.sent, behind, before)
    longest = max(float((before + behind).max(initial=0.0)), 1e-300)
    sent = np.zeros(n)
    np.maximum.at(sent, s.source, s.sent)
    limited = np.isfinite(s.room) & (s.room > 0)
    least = float(s.room[limited].min()) if limited.any() else np.inf
    held = float(s.memory.sum()) / (least * s.devices.sum())
    slow = np.where(able & (best > 0), s.seconds / np.where(best > 0, best, 1.0), 1.0)
    rows = (
        np.log1p(best / mean), np.log1p(sent / mean), _cut(best / even), _cut(s.memory / least),
        _cut(s.memory * n / max(float(s.memory.sum()), 1e-300)), behind / longest, before / longest,
        1 - (behind + before) / longest, s.place, np.log1p(np.bincount(s.target, minlength=n)),
        np.log1p(np.bincount(s.source, minlength=n)),
        np.log(np.clip((slow * part[:, None]).sum(axis=0), 1.0, 1e6)), part @ able,
    )  # fmt: skip
    fill = np.where(limited, s.memory.sum() / np.where(limited, s.room * s.devices.sum(), 1.0), 0.0)
    kinds = [np.log(np.clip(slow.mean(axis=1), 1.0, 1e6)), part, np.log1p(s.devices) / 5, _cut(fill)]
    whole = (
        np.log1p(n) / 10, np.log1p(s.devices.sum()) / 5, np.log1p(longest / even),
        np.log1p(float(s.sent.sum()) / max(float(best.sum()), 1e-300)), _cut(held),
        np.log1p(len(s.source) / n), s.hosts,
    )  # fmt: skip
    weight = s.sent + max(_LEAST * _unit(s.sent), 1e-300)
    type_of, ops = np.repeat(np.arange(types), n), np.tile(np.arange(n), types)
    runs = (part[:, None] * np.where(able, 1 / np.maximum(slow, 1.0), 0.0)).ravel()
    every, only = np.arange(n), np.zeros(n, np.int64)
    parts = (
        (s.source, s.target, weight / np.bincount(s.target, weight, n)[s.target]),
        (s.target, s.source, weight / np.bincount(s.source, weight, n)[s.source]),
        (type_of, ops, runs),
        (np.arange(types), np.zeros(types, np.int64), part),
        (every, only, np.full(n, 1 / n)),
        (only, every, np.ones(n)),
    )  # fmt: skip
    return assemble(schema(1), (np.stack(rows, axis=1), np.stack(kinds, axis=1), np.array([whole])), parts)


def assemble(of: Schema, rows: Sequence[FloatArray], along: Sequence[tuple[Index, Index, FloatArray | None]]) -> Graph:
    """Return a graph of figures of each kind's nodes and of edges of each relation, by numbers among their kind.

    The weights of a relation without any are even, with the sum 1 for each target.
    """
    first = np.cumsum([0, *map(len, rows)])
    made, at = room(of, int(first[-1]), sum(len(source) for source, *_ in along)), 0
    made.kind[:] = first
    for k, x in enumerate(rows):
        made.x[first[k] : first[k + 1], : x.shape[1]] = x
    for r, (source, target, weight) in enumerate(along):
        made.relation[r], upto, (a, b) = at, at + len(source), first[of.ends[r]]
        made.source[at:upto], made.target[at:upto] = a + source, b + target
        made.weight[at:upto] = 1 / np.bincount(target)[target] if weight is None else weight
        at = upto
    made.relation[-1] = at
    return made


def chain(keys: FloatArray) -> tuple[Index, Index]:
    """Return pairs of items that are up to four places apart by their keys, the lesser first."""
    order = np.argsort(keys, kind="stable")
    return np.concatenate([order[:-k] for k in _APART]), np.concatenate([order[k:] for k in _APART])


def standard(values: FloatArray) -> FloatArray:
    """Return values of mean 0 and deviation 1 along the first axis."""
    return np.asarray((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-6))


def _cut(ratio: FloatArray | float) -> FloatArray:
    return np.clip(np.nan_to_num(ratio, posinf=_MOST), 0.0, _MOST)


def _unit(values: FloatArray) -> float:
    some = values[values > 0]
    return float(some.mean()) if len(some) else 1.0
