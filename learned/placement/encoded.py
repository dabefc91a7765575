"""A batch as the network gets it: before any gang is placed."""

from __future__ import annotations

from gangplan.instances.placement import PlacementProblem

from ..encode.encoding import Encoding
from ..encode.placement import PlacementEncoder


def encode(problem: PlacementProblem, flat: bool = False) -> Encoding:
    """Return the batch with what runs already, before any gang is placed; `flat`: without racks."""
    found = PlacementEncoder(problem)()
    found.nodes.pop("problem")
    if flat:
        found.nodes.pop("racks")
    for relation in list(found.edges):
        if relation[0] not in found.nodes or relation[2] not in found.nodes:
            del found.edges[relation], found.weights[relation]
    return found
