"""How many features each type of node and edge has: what a network is built from."""

from __future__ import annotations

from ..encode.encoding import Relation

NODES: dict[str, int] = {"ops": 24, "classes": 3, "problem": 26}
EDGES: dict[Relation, int] = {
    ("ops", "mirror", "ops"): 0,
    ("ops", "rev_mirror", "ops"): 0,
    ("ops", "of", "classes"): 0,
    ("classes", "rev_of", "ops"): 0,
    ("ops", "feed", "ops"): 6,
    ("ops", "rev_feed", "ops"): 6,
    ("problem", "has", "ops"): 0,
    ("ops", "rev_has", "problem"): 0,
}
SCHEMA = NODES, EDGES
