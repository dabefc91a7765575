"""The compiled part of the graphs of splits: the longest paths to and from each op."""

from __future__ import annotations

from types import ModuleType

import networkx as nx
import numpy as np
import pytest

from gangplan.learned.graph import compiled
from gangplan.learned.offline import graphs
from gangplan.solvers import native

from ...solvers.uncompiled import uncompiled


@pytest.mark.parametrize("module", [graphs, uncompiled(native, compiled, graphs)], ids=("compiled", "source"))
@pytest.mark.parametrize("seed", range(4))
def test_paths_are_the_longest(seed: int, module: ModuleType) -> None:
    """To and from each op of a random graph the paths are those that networkx finds; wrong sizes are refused."""
    rng = np.random.default_rng(seed)
    n = 12
    edges = [(a, b) for a in range(n) for b in range(a + 1, n) if rng.random() < 0.3]
    own, sent = rng.random(n), rng.random(len(edges))
    first = np.searchsorted([a for a, _ in edges], np.arange(n + 1))
    arrays = np.arange(n), first, np.arange(len(edges)), np.array([b for _, b in edges]), own, sent
    behind, before = np.zeros((2, n))
    module.paths(*arrays, behind, before)
    dag = nx.DiGraph()
    dag.add_nodes_from(range(n))
    dag.add_weighted_edges_from((a, b, own[a] + s) for (a, b), s in zip(edges, sent, strict=True))
    for v in range(n):
        to = nx.DiGraph(dag.subgraph(nx.ancestors(dag, v) | {v}))
        assert before[v] == pytest.approx(nx.dag_longest_path_length(to))
        after = nx.DiGraph(dag.subgraph(nx.descendants(dag, v) | {v}))
        for x in [x for x in after if not dag.out_degree(x)]:
            after.add_edge(x, "end", weight=own[x])
        assert behind[v] == pytest.approx(nx.dag_longest_path_length(after))
    with pytest.raises(ValueError, match="are not the"):
        module.paths(*arrays, behind[1:], before)
