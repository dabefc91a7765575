"""The network above devices or nodes: its groups as nodes of type ``racks``, joined to what they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.ramp import coordinates
from gangplan.instances.topology import RampTopology, TreeTopology

from .encoding import Encoding, Floats, Index, log_over


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of all levels, the lowest level first; g groups over d leaves.

    Attributes:
        level: of each group, from 0, int64 (g,).
        leaf: for each pair of a leaf and its group of the lowest level (of each dimension, in a RAMP cluster), the
            leaf, int64.
        group: and the group, int64.
        inner, outer: pairs of a group and the one that it lies in, int64.
        bandwidth, latency: of each group: bytes/s and seconds between two of its members, (g,).
        leaves: how many each holds, (g,).
        of: for each level, the group of each leaf, int64 (levels, d).
    """

    level: Index
    leaf: Index
    group: Index
    inner: Index
    outer: Index
    bandwidth: Floats
    latency: Floats
    leaves: Floats
    of: Index


def groups(topology: TreeTopology | RampTopology) -> Groups:
    """Return the groups of a topology; of RAMP its racks and communication groups, none within another."""
    if isinstance(topology, RampTopology):
        x = topology
        c, r, _ = coordinates(x, np.arange(x.n_devices, dtype=np.int32))
        labels = np.stack([c * x.racks + r, c]).astype(np.int64) if x.n_devices else np.zeros((2, 0), dtype=np.int64)
        speeds = [(x.channel_bandwidth, x.propagation + 2 * x.io_latency)] * 2
        nested = False
    else:
        labels, nested = topology.group.astype(np.int64), True
        speeds = [(level.bandwidth, level.latency) for level in topology.levels]
    return _groups(labels, speeds, nested)


def _groups(labels: Index, speeds: list[tuple[float, float]], nested: bool) -> Groups:
    d = labels.shape[1]
    of, first, level = np.zeros_like(labels), 0, []
    inner: list[Index] = []
    outer: list[Index] = []
    for i, row in enumerate(labels):
        found, inverse = np.unique(row, return_inverse=True)
        of[i] = inverse + first
        level.append(np.full(len(found), i))
        first += len(found)
        if nested and i:
            pairs = np.unique(of[i - 1 : i + 1], axis=1)
            inner.append(pairs[0])
            outer.append(pairs[1])
    levels = np.concatenate(level)
    rows = of[:1] if nested else of
    empty = np.zeros(0, dtype=np.int64)
    return Groups(
        levels,
        np.tile(np.arange(d), len(rows)),
        rows.ravel(),
        np.concatenate([empty, *inner]),
        np.concatenate([empty, *outer]),
        np.array([x for x, _ in speeds])[levels],
        np.array([x for _, x in speeds])[levels],
        np.bincount(of.ravel(), minlength=first).astype(float),
        of,
    )


def add_racks(encoding: Encoding, found: Groups, leaves: str, columns: dict[str, Floats]) -> None:
    """Add the groups as ``racks``, with columns of the caller's beside level and size, and join them to the leaves."""
    levels = float(found.level.max()) if len(found.level) else 0.0
    # how large beside the others of its level: a larger cluster has more groups, not larger numbers
    usual = np.bincount(found.level, weights=found.leaves) / np.maximum(np.bincount(found.level), 1)
    own = {"level": found.level / max(levels, 1.0), "leaves": log_over(found.leaves, usual[found.level])}
    encoding.add("racks", len(found.level), own | columns)
    encoding.join((leaves, "in", "racks"), found.leaf, found.group)
    encoding.join(("racks", "within", "racks"), found.inner, found.outer)
