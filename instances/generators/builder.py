"""Build an op graph from what each op computes, keeps and sends.

Numbers are 16 bits wide. While training, a parameter takes 16 bytes: weight and gradient in 16 bits, and Adam's
master copy, momentum and variance in 32 (Rajbhandari et al., "ZeRO", SC 2020, section 3.1). A forward op keeps its
output for the backward pass, one batch of it; a gradient is used up as soon as it is there, and is not counted.
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray, require_flag
from ..cluster import DeviceType
from ..devices import EFFICIENCY, roofline
from ..errors import InstanceError
from ..graph import OpGraph, with_backward

ELEMENT_BYTES = 2
"""Bytes of a weight or an activation."""
TRAINING_BYTES = 16
"""Bytes a parameter occupies while training."""


class GraphBuilder:
    """Collect ops in topological order, then turn them into an `OpGraph`."""

    def __init__(self) -> None:
        self._ops: dict[str, dict[str, float]] = {}
        self._edges: list[tuple[str, str]] = []

    def op(
        self,
        name: str,
        *inputs: str,
        flops: float,
        output: float,
        parameters: float = 0,
        shared: float = 0,
        touched: float | None = None,
        gradient: float | None = None,
    ) -> str:
        """Add an op and return its name.

        Args:
            name: unique.
            inputs: names of the ops whose outputs it reads.
            flops: of its forward pass.
            output: elements it produces.
            parameters: weights it owns.
            shared: weights that another op owns; a copy is kept here, as pipelines do with tied embeddings.
            touched: weights that one pass reads, by default all.
            gradient: FLOPs of its backward pass; by default twice the forward ones if it has weights (gradients of
                inputs and of weights), as many as forward if not.
        """
        if name in self._ops:
            raise InstanceError("op", f"{name!r} is a duplicate")
        weights = parameters + shared
        self._ops[name] = {
            "flops": flops,
            "gradient": (2 if weights else 1) * flops if gradient is None else gradient,
            "received": sum(self._ops[source]["output"] for source in inputs),
            "output": output,
            "owned": parameters,
            "kept": weights,
            "touched": weights if touched is None else touched,
        }
        self._edges += [(source, name) for source in dict.fromkeys(inputs)]
        return name

    def graph(self, *devices: DeviceType, training: bool = True, efficiency: float = EFFICIENCY) -> OpGraph:
        """Return the graph with the times of every device type.

        Args:
            devices: the types to compute times for, by the roofline.
            training: add the backward ops, see `with_backward`.
            efficiency: see `roofline`.
        """
        require_flag(training, "training")
        index = {name: i for i, name in enumerate(self._ops)}
        output, received, kept, touched = map(self._column, ("output", "received", "kept", "touched"))
        source, target = np.array([(index[u], index[v]) for u, v in self._edges], dtype=np.int32).reshape(-1, 2).T

        def times(flops: FloatArray, elements: FloatArray) -> FloatArray:
            return np.array([roofline(kind, flops, elements * ELEMENT_BYTES, efficiency) for kind in devices])

        forward = OpGraph(
            names=tuple(self._ops),
            device_types=tuple(kind.name for kind in devices),
            time=times(self._column("flops"), received + touched + output),
            memory=kept * (TRAINING_BYTES if training else ELEMENT_BYTES) + output * ELEMENT_BYTES,
            parameter_bytes=self._column("owned") * ELEMENT_BYTES,
            activation_bytes=output * ELEMENT_BYTES,
            source=source,
            target=target,
            edge_bytes=output[source] * ELEMENT_BYTES,
        )
        if not training:
            return forward
        # backward reads the output's gradient, the inputs and the weights, and writes gradients of the latter two
        back = times(self._column("gradient"), output + 2 * (received + touched))
        return with_backward(forward, back, np.zeros(len(index)))

    def _column(self, field: str) -> FloatArray:
        try:
            return np.array([op[field] for op in self._ops.values()], dtype=float)
        except OverflowError:
            raise InstanceError(field, "of an op is beyond any computer") from None
