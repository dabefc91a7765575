"""How many features each type of node and edge has: what a network is built from."""

from __future__ import annotations

from ..encode.encoding import Relation

BASE = 3
"""How many settings of the book, the first ones, are decoded for every problem."""
_PROBLEM = {"problem": 18 + 2 * BASE}
_GRAPH = {"ops": 24, "classes": 3}
_EDGES: dict[Relation, int] = {
    ("ops", "mirror", "ops"): 0,
    ("ops", "rev_mirror", "ops"): 0,
    ("ops", "of", "classes"): 0,
    ("classes", "rev_of", "ops"): 0,
    ("ops", "feed", "ops"): 6,
    ("ops", "rev_feed", "ops"): 6,
    ("problem", "has", "ops"): 0,
    ("ops", "rev_has", "problem"): 0,
}


def schema(messages: bool) -> tuple[dict[str, int], dict[Relation, int]]:
    """Return the features of nodes and of edges, for a network with messages or without."""
    return ({**_GRAPH, **_PROBLEM}, _EDGES) if messages else (_PROBLEM, {})
