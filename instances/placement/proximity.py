"""How much the GPUs of a gang pay for being apart: the communication cost of TopDRL's cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..arrays import check_fields, require_number
from ..errors import InstanceError
from .fleet import Fleet


@dataclass(frozen=True, slots=True)
class Proximity:
    """Weights of the links between GPUs, by how close they are.

    The communication cost of a gang is the sum of the weights of the cheapest links that join all of its GPUs (a
    minimum spanning tree): with GPUs on k nodes in r racks, those of a node are joined by `node` links, the nodes of a
    rack by k - r `rack` links, and the racks by r - 1 `cluster` links. A job with intensity i gets on at the rate
    1 / (1 + i * cost): a single GPU at 1.

    The weights are those of Ayadi et al. (TopDRL, JPDC 204, 2025): one over the bandwidths of NVLink, InfiniBand and
    the links between racks. How they make a speed is our reconstruction.

    Attributes:
        node: of a link between two GPUs of a node.
        rack: of a link between two nodes of a rack.
        cluster: of a link between two racks.
        intensity: of the jobs of a model, by its name; 1 for others.
    """

    node: float = 1 / 40
    rack: float = 1 / 4
    cluster: float = 1 / 2
    intensity: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.node <= self.rack <= self.cluster:
            raise InstanceError("rack", f"{self.rack!r} is not between {self.node!r} of a node and {self.cluster!r}")
        if not isinstance(self.intensity, Mapping):
            raise InstanceError("intensity", f"{self.intensity!r} is not a number by the name of a model")
        for model, value in self.intensity.items():
            require_number(value, f"intensity[{model}]")
        object.__setattr__(self, "intensity", {model: float(value) for model, value in self.intensity.items()})

    def cost(self, fleet: Fleet, nodes: Sequence[int], gpus: Sequence[int]) -> float:
        """Return the communication cost of a gang that has so many GPUs on each of these nodes."""
        on = sorted({n for n, g in zip(nodes, gpus, strict=True) if g > 0})
        racks = len({int(fleet.topology.group[0][n]) for n in on})
        inside = sum(gpus) - len(on)
        return inside * self.node + (len(on) - racks) * self.rack + max(0, racks - 1) * self.cluster

    def slowdown(self, model: str, cost: float) -> float:
        """Return how many times its duration a job takes."""
        return 1 + self.intensity.get(model, 1.0) * cost

    def rate(self, model: str, cost: float) -> float:
        """Return the seconds of its duration that a job gets on in a second."""
        return 1 / self.slowdown(model, cost)
