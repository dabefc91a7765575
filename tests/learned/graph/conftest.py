"""Schemas and graphs that are drawn: any kinds of nodes, with none of some kinds, and relations without edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from gangplan.learned.graph.compiled import Graph
from gangplan.learned.graph.network import GraphNetwork
from gangplan.learned.graph.schema import Schema

NAMES = ("a", "b", "c", "d")


def draw_schema(rng: np.random.Generator) -> Schema:
    """Return a schema of up to four kinds, some of whose relations go from a kind to itself."""
    names = NAMES[: rng.integers(1, 5)]
    kinds = {name: tuple(f"{name}{i}" for i in range(rng.integers(1, 6))) for name in names}
    ends = [(str(rng.choice(names)), f"r{i}", str(rng.choice(names))) for i in range(rng.integers(0, 6))]
    return Schema(kinds, tuple(ends), str(rng.choice(names)), int(rng.integers(1, 4)))


def draw_graph(schema: Schema, rng: np.random.Generator) -> Graph:
    """Return a graph in arrays that are longer than what counts, with nonsense behind it; some kinds have no nodes."""
    counts = rng.integers(0, 7, len(schema.kinds)) * (rng.random(len(schema.kinds)) < 0.8)
    kind = np.append(0, np.cumsum(counts)).astype(np.int64)
    x = np.full((kind[-1] + 3, schema.width), np.nan, np.float32)
    for k, names in enumerate(schema.kinds.values()):
        rows = slice(kind[k], kind[k + 1])
        x[rows] = 0
        x[rows, : len(names)] = rng.normal(size=(counts[k], len(names)))
    ends, relation = [], [0]
    for a, b in schema.ends:
        edges = rng.integers(0, 12) if counts[a] and counts[b] and rng.random() < 0.8 else 0
        ends += [(kind[a] + rng.integers(counts[a]), kind[b] + rng.integers(counts[b])) for _ in range(edges)]
        relation.append(relation[-1] + edges)
    source, target = np.full((2, len(ends) + 5), -1)
    source[: len(ends)], target[: len(ends)] = np.array(ends, np.int64).reshape(-1, 2).T
    weight = np.append(rng.uniform(0.1, 2, len(ends)), np.full(5, np.nan)).astype(np.float32)
    return Graph(x, kind, source.copy(), target.copy(), weight, np.array(relation))


@pytest.fixture
def make_graphs() -> Callable[[int, int], tuple[Schema, list[Graph]]]:
    """Return what draws a schema and some graphs of it."""

    def make(seed: int, count: int) -> tuple[Schema, list[Graph]]:
        rng = np.random.default_rng(seed)
        schema = draw_schema(rng)
        return schema, [draw_graph(schema, rng) for _ in range(count)]

    return make


@pytest.fixture
def make_network(one_thread: None) -> Callable[..., GraphNetwork]:
    """Return what makes a network whose every number is drawn, the last layer, too."""

    def make(schema: Schema, seed: int, *, messages: bool = True) -> GraphNetwork:
        torch.manual_seed(seed)
        network = GraphNetwork(schema, 4 + seed % 5, seed % 4, messages=messages, ranged=True)
        for tensor in network.parameters():
            torch.nn.init.normal_(tensor, std=0.5)
        return network

    return make
