"""Preprocessing: merge the items that are in one call in every plan.

Call a set of items tied if each plan has all of it in one call. Items of a group that fits no host are tied. Of tied
sets and single items take those on a cycle: each waits for the next. A call that holds one of the tied sets there waits
for an item that waits for the call, unless that item is in it too; no call waits for itself, so all of the cycle is in
it, and with an item its group, which shares a device. A cycle has some tied set on it, for the items alone have none.
So what is on a cycle, with the groups it touches, is tied in turn; this is repeated until there is no cycle.

A tied set may be one item: a call takes the seconds of all of it, and pays for a net if some of the net's pins are in
it and not all. It runs on no host.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import BoolArray, row_sums
from gangplan.instances.graph import components, strong_components

from ...run import never
from .chain import Index
from .reduced import ReducedLatency, merged


def contract(r: ReducedLatency, stopped: Callable[[], bool] = never) -> ReducedLatency:
    """Return `r` with tied items merged; its plans are the same."""
    hosts = [s for s, slot in enumerate(r.slots) if slot.host]
    tied: BoolArray = r.fits[:, hosts].sum(axis=1) == 0
    if len(r.groups) == r.n_items or not tied.any():
        return r
    label = _numbered(np.where(tied[r.group_of], r.group_of, len(r.groups) + np.arange(r.n_items)))
    while not stopped():
        found = _closed(r, label)
        if len(np.unique(found)) == len(np.unique(label)):
            return _merged(r, label)
        label = found
    return r


def _closed(r: ReducedLatency, label: Index) -> Index:
    """Return labels by which what is on a cycle of the labels is one, with the groups it touches."""
    ends = np.array(r.edges, dtype=np.int64).reshape(-1, 2)
    cycle = strong_components(label[ends[:, 0]], label[ends[:, 1]], int(label.max()) + 1)[label]
    drawn = np.zeros(len(r.groups), dtype=bool)
    drawn[r.group_of[np.bincount(cycle)[cycle] > 1]] = True
    inside = np.flatnonzero(drawn[r.group_of])
    count = int(cycle.max()) + 1
    joined = components(cycle[inside], r.group_of.astype(np.int64)[inside] + count, count + len(r.groups))
    return _numbered(joined[cycle])


def _numbered(label: Index) -> Index:
    return np.asarray(np.unique(label, return_inverse=True)[1], dtype=np.int64).ravel()


def _merged(r: ReducedLatency, label: Index) -> ReducedLatency:
    first = np.unique(label, return_index=True)[1][_numbered(label)]
    total = row_sums(first, r.time, r.n_items)
    several = first[first != np.arange(r.n_items)]
    for t in {slot.kind for slot in r.slots if slot.host}:
        total[t, several] = np.inf
    return merged(r, first.tolist(), total)
