"""Merging groups that some optimal plan has on one device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gangplan.instances import OpGraph, PartitionProblem
from gangplan.instances.devices import server
from gangplan.solvers.method import suite
from gangplan.solvers.partition.throughput import dominate
from gangplan.solvers.partition.throughput.bounds import impossible
from gangplan.solvers.partition.throughput.quotient import quotient


def drawn() -> Iterator[Any]:
    """Yield small problems without an order of stages that have plans."""
    for seed in range(60):
        q = quotient(suite("throughput").random_problem(seed, "free"))
        if impossible(q) is None:
            yield q


def test_pairs_left_out_gain_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at all pairs on a net merges what looking at a few of them does."""
    few = [dominate.dominate(q).group_of.tolist() for q in drawn()]

    def all_pairs(self: Any, u: int) -> set[int]:
        return set().union(*(self.pins[e] for e in self.touching[u])) - {u}

    monkeypatch.setattr(dominate._Merger, "_hosts", all_pairs)
    assert few == [dominate.dominate(q).group_of.tolist() for q in drawn()]


def test_a_star_is_no_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand ops that read one output hardly any pair is looked at."""
    n, looked = 1000, 0
    source, target = np.zeros(n - 1, dtype=np.int32), np.arange(1, n, dtype=np.int32)
    ones = np.ones(n)
    graph = OpGraph(
        names=tuple(map(str, range(n))),
        device_types=("A100",),
        time=ones[None],
        memory=ones,
        parameter_bytes=ones,
        activation_bytes=ones,
        source=source,
        target=target,
        edge_bytes=np.ones(n - 1),
    )
    before = dominate._Merger._dominated

    def count(self: Any, u: int, v: int) -> bool:
        nonlocal looked
        looked += 1
        return before(self, u, v)

    monkeypatch.setattr(dominate._Merger, "_dominated", count)
    dominate.dominate(quotient(PartitionProblem(graph, server(8, "A100"), "free")))
    assert looked < n
