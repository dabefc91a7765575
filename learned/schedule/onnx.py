"""The policy in ONNX: the vectors of jobs and options, and the small matrices that rate candidates, as outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..gnn.onnx import OnnxNetwork
from ..gnn.onnx import export as write
from .build import Net
from .builder import Builder

if TYPE_CHECKING:
    from .policy import SchedulePolicy

OUTPUTS = ("by_job", "by_option", "first", "second", "bias", "last")


def export(policy: SchedulePolicy, path: str | Path) -> list[Path]:
    """Write a policy as ONNX and return the file; needs gangplan[learn,onnx].

    Raises:
        InstanceError: if a package is missing.
    """
    import torch

    class Vectors(torch.nn.Module):
        """What `gangplan.learned.schedule.build.rate` reads."""

        def __init__(self) -> None:
            super().__init__()
            self.network = policy.network

        def forward(self, batch: Any) -> tuple[Any, ...]:
            """Return a tensor for each of `OUTPUTS`."""
            x = self.network
            by_job, by_option = x.offsets(batch)
            # outputs that are weights as they are would not be outputs: a copy is
            rest = (x.first.weight.T, x.second.weight.T, x.second.bias, x.last.weight[0])
            return (by_job, by_option, *(part + 0.0 for part in rest))

    return [write(Vectors(), policy.network.body.schema, path, OUTPUTS)]


class OnnxSchedulePolicy:
    """Gives what `SchedulePolicy.nets` does, by ONNX Runtime and without torch.

    Args:
        path: of a file that `export` wrote.

    Raises:
        InstanceError: if it is missing or broken, or ONNX Runtime is missing.
    """

    def __init__(self, path: str | Path) -> None:
        self._network = OnnxNetwork(path)

    def nets(self, builders: Sequence[Builder]) -> list[Net]:
        """Return the network for each of some instances."""
        made = []
        for builder in builders:
            found = [np.ascontiguousarray(x) for x in self._network(builder.graph())]
            made.append(Net(found[2], found[0], found[1], found[3], found[4], found[5]))
        return made
