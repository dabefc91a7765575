"""The head in numpy: a decision has few places, and calls into torch would take longer than their work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from .features import AT

if TYPE_CHECKING:
    from .network import Network


@dataclass(frozen=True, slots=True)
class Context:
    """What the network makes of a batch before the first gang is placed.

    Attributes:
        jobs, nodes: what the head sees of each, float64 (J, s) and (m, s).
        turn: of each job; the largest goes first, other things being equal, float64 (J,).
    """

    jobs: FloatArray
    nodes: FloatArray
    turn: FloatArray


class Head:
    """Scores places as `Network` does.

    Args:
        network: its weights are copied.
    """

    def __init__(self, network: Network) -> None:
        self.layers = [
            (x.weight.detach().cpu().double().numpy().T.copy(), x.bias.detach().cpu().double().numpy().copy())
            for x in network.head
            if hasattr(x, "weight")
        ]
        self.steep = float(network.steep.detach().exp())

    def __call__(self, x: FloatArray, job: FloatArray, pooled: FloatArray) -> FloatArray:
        """Return the scores of the places of one decision, (C,).

        Args:
            x: figures, (C, F).
            job: what is seen of the job, (s,).
            pooled: mean of what is seen of the nodes of each place, (C, s).
        """
        hidden = np.concatenate([squeezed(x), np.broadcast_to(job, (len(x), len(job))), pooled], axis=1)
        for i, (weight, bias) in enumerate(self.layers):
            hidden = hidden @ weight + bias
            if i < len(self.layers) - 1:
                hidden = np.maximum(hidden, 0.0)
        return np.asarray(hidden[:, 0] - self.steep * x[:, AT["dearer"]])


def squeezed(x: FloatArray) -> FloatArray:
    """Return features as `gnn.network.squeezed` does."""
    size = np.abs(x)
    return np.where(size > 1, np.sign(x) * (1 + np.log(np.maximum(size, 1))), x)


def pool(nodes: FloatArray, place: IntArray, node: IntArray, count: int) -> FloatArray:
    """Return the mean of the vectors of each place's nodes, (C, s); 0 for a place without any."""
    share = np.zeros((count, len(node)))
    share[place, np.arange(len(node))] = 1.0
    found: FloatArray = share @ nodes[node] / np.maximum(share.sum(axis=1), 1.0)[:, None]
    return found
