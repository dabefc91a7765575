"""A job as a series of blocks: the ops that everything passes through, and what lies between two of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray

from .model import Prepared


@dataclass(frozen=True)
class Half:
    """What lies between two joints, next to one another in the series.

    Attributes:
        ops: in topological order; the joints are the first and the last.
        edges: (u, v) as positions in `ops`, sorted.
    """

    ops: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Unit:
    """A block of the series, with its mirror image in the backward pass if all its ops are colocated with that.

    Attributes:
        halves: one or two; each takes its own time.
        groups: of all ops; that of the first joint first, that of the last joint last unless it is the same.
    """

    halves: tuple[Half, ...]
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Series:
    """A job as a series.

    Attributes:
        joints: seconds of the ops between the units, on the types that run them fastest, in total.
        units: in order; each begins with the joint that the one before ends with.
        memory: bytes of the groups seen up to each joint, that included: before the first unit, and after each,
            float64 (len(units) + 1,).
        joint_memory: bytes of the joint's group alone, 0 if it was seen before, float64 (len(units) + 1,).
    """

    joints: float
    units: tuple[Unit, ...]
    memory: FloatArray
    joint_memory: FloatArray


def series(p: Prepared, *, jumped: bool = True) -> Series:
    """Split the job at its joints, ops that come before or after every other.

    Ops are left out that do not lie between the first joint and the last: those that feed or follow only a part of the
    job. Where the joints mirror one another in their groups, so a training step, the two halves make one series.

    Args:
        p: the problem.
        jumped: count also joints over which an edge jumps, as a residual connection does. That makes units smaller and
            memory sharper, but the edge belongs to no unit and is left out.
    """
    between, joints = _joints(p)
    place = {v: i for i, v in enumerate(p.order.tolist())}
    if not jumped:
        joints = _not_jumped(p, set(between), joints, place)
    inner: list[list[int]] = [[] for _ in joints]
    at, rank = 0, [place[v] for v in joints]
    for v in sorted(between, key=place.__getitem__):
        while at + 1 < len(joints) and place[v] >= rank[at + 1]:
            at += 1
        if v != joints[at]:
            inner[at].append(v)
    halves = [_half(p, (joints[i], *inner[i], joints[i + 1])) for i in range(len(joints) - 1)]
    group = p.group_of.tolist()
    count = len(halves)
    seen = [[group[v] for v in half.ops] for half in halves]
    mirrored = count % 2 == 1 and all(
        set(seen[i]) == set(seen[~i]) and seen[i][0] == seen[~i][-1] and seen[i][-1] == seen[~i][0]
        for i in range(count // 2 + 1)
    )
    if mirrored and len(set(seen[count // 2])) == 1 and len(halves[count // 2].ops) == 2:
        pairs = [(halves[i], halves[count - 1 - i]) for i in range(count // 2)]
    else:
        pairs = [(half,) for half in halves]  # type: ignore[misc]
    units = tuple(_unit(group, pair) for pair in pairs)
    ends = [group[v] for v in joints[: len(units) + 1]]
    return Series(float(p.fastest[joints].sum()), units, *_memory(p, units, ends))


def _joints(p: Prepared) -> tuple[list[int], list[int]]:
    """Return the ops between the first and the last joint, those included, and the joints in order."""
    # the sets of ops before and after each, as bits
    before, after = _closure(p.order.tolist(), p.predecessors), _closure(p.order[::-1].tolist(), p.successors)
    first = max(p.order.tolist(), key=lambda v: after[v].bit_count())
    reach = after[first] | 1 << first
    last = max((v for v in p.order.tolist() if reach >> v & 1), key=lambda v: (before[v] & reach).bit_count())
    main = reach & (before[last] | 1 << last)
    ops = [v for v in p.order.tolist() if main >> v & 1]
    joints = [v for v in ops if ((before[v] | after[v]) & main).bit_count() == len(ops) - 1]
    return ops, joints


def _not_jumped(p: Prepared, between: set[int], joints: list[int], place: dict[int, int]) -> list[int]:
    rank = [place[v] for v in joints]
    jumps = np.zeros(len(joints) + 1, dtype=np.int64)
    for u, v in zip(*(ends.tolist() for ends in p.edges), strict=True):
        if u in between and v in between:
            low, high = bisect_right(rank, place[u]), bisect_left(rank, place[v])
            jumps[low] += low < high
            jumps[high] -= low < high
    return [v for v, over in zip(joints, np.cumsum(jumps).tolist(), strict=False) if not over]


def _closure(order: list[int], relation: tuple[np.ndarray, np.ndarray]) -> list[int]:
    first, index = relation[0].tolist(), relation[1].tolist()
    found = [0] * len(order)
    for v in order:
        for u in index[first[v] : first[v + 1]]:
            found[v] |= found[u] | 1 << u
    return found


def _half(p: Prepared, ops: tuple[int, ...]) -> Half:
    place = {v: i for i, v in enumerate(ops)}
    first, index = p.successors[0].tolist(), p.successors[1].tolist()
    edges = [(i, place[w]) for v, i in place.items() for w in index[first[v] : first[v + 1]] if w in place]
    return Half(ops, tuple(sorted(edges)))


def _unit(group: list[int], halves: tuple[Half, ...]) -> Unit:
    ops = halves[0].ops
    ends = {group[ops[0]], group[ops[-1]]}
    inner = [g for g in dict.fromkeys(group[v] for half in halves for v in half.ops) if g not in ends]
    return Unit(halves, tuple(dict.fromkeys([group[ops[0]], *inner, group[ops[-1]]])))


def _memory(p: Prepared, units: tuple[Unit, ...], ends: list[int]) -> tuple[FloatArray, FloatArray]:
    """Return the bytes up to each joint and of each joint; a group counts where it is seen first."""
    seen: set[int] = set()
    total, joint = [], []
    for groups, end in zip([(ends[0],), *(unit.groups for unit in units)], ends, strict=True):
        new = [g for g in groups if g not in seen]
        seen.update(new)
        joint.append(float(p.group_memory[end]) if end in new else 0.0)
        total.append(float(p.group_memory[new].sum()))
    return np.cumsum(total), np.array(joint)
