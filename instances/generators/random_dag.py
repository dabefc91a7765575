"""Random graphs with the two shapes that networks have: layers, and branches that fork and join."""

from __future__ import annotations

import numpy as np

from ..arrays import require_number
from ..errors import InstanceError
from .builder import ELEMENT_BYTES, GraphBuilder


def layered(
    *,
    ops: int = 100,
    layers: int = 20,
    degree: float = 1.5,
    flops: float = 1e11,
    intensity: float = 1000.0,
    seed: int = 0,
) -> GraphBuilder:
    """Build `ops` forward ops spread over `layers`; an op past the first layer has a predecessor in the layer before.

    Args:
        ops: forward ops.
        layers: at most `ops`; each has at least one.
        degree: edges per op past the first layer, on average, at least 1. Those past the first come from any
            earlier layer.
        flops: median of an op's FLOPs, which are log-normal.
        intensity: median of FLOPs per byte an op sends, log-normal too: the larger, the cheaper communication.
        seed: of the local random generator.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    draw = _Draw(flops, intensity, seed)
    for name, value in (("ops", ops), ("layers", layers)):
        require_number(value, name, positive=True, whole=True)
    require_number(degree, "degree")
    if layers > ops:
        raise InstanceError("layers", f"{layers!r} is more than the {ops!r} ops")
    if not 1 <= degree <= ops:
        raise InstanceError("degree", f"{degree!r} is not between 1 and the {ops!r} ops")
    rng = draw.rng
    starts = np.concatenate([[0], 1 + np.sort(rng.choice(ops - 1, layers - 1, replace=False)), [ops]]).astype(int)
    for layer in range(layers):
        begin, end = starts[layer], starts[layer + 1]
        for i in range(begin, end):
            inputs = [int(rng.integers(starts[layer - 1], begin))] if layer else []
            inputs += rng.integers(0, begin, rng.poisson(degree - 1)).tolist() if layer else []
            draw.op(f"op{i}", *(f"op{j}" for j in sorted(set(inputs))))
    return draw.builder


def fork_join(
    *, stages: int = 10, width: int = 4, depth: int = 3, flops: float = 1e11, intensity: float = 1000.0, seed: int = 0
) -> GraphBuilder:
    """Build a chain of `stages`, each a fork, up to `width` branches of up to `depth` forward ops, and a join.

    Args:
        stages: fork-join pairs; a join is the next fork.
        width: branches of a stage, from 2 (or `width` if less) up to this many.
        depth: ops of a branch, from 1 up to this many.
        flops, intensity, seed: see `layered`.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    draw = _Draw(flops, intensity, seed)
    for name, value in (("stages", stages), ("width", width), ("depth", depth)):
        require_number(value, name, positive=True, whole=True)
    join = draw.op("join0")
    for stage in range(1, stages + 1):
        ends = []
        for branch in range(draw.rng.integers(min(2, width), width + 1)):
            x = join
            for i in range(draw.rng.integers(1, depth + 1)):
                x = draw.op(f"stage{stage}/branch{branch}/op{i}", x)
            ends.append(x)
        join = draw.op(f"join{stage}", *ends)
    return draw.builder


class _Draw:
    """Ops of random size."""

    def __init__(self, flops: float, intensity: float, seed: int) -> None:
        require_number(flops, "flops", positive=True)
        require_number(intensity, "intensity", positive=True)
        require_number(seed, "seed", whole=True)
        self.builder = GraphBuilder()
        self.rng = np.random.default_rng(seed)
        self._flops, self._intensity = flops, intensity

    def op(self, name: str, *inputs: str) -> str:
        """Add an op; half of the ops have weights, a twentieth as large as their output."""
        flops = self._flops * self.rng.lognormal(0.0, 1.0)
        output = flops / (self._intensity * self.rng.lognormal(0.0, 0.5)) / ELEMENT_BYTES
        weights = output / 20 if self.rng.random() < 0.5 else 0.0
        return self.builder.op(name, *inputs, flops=flops, output=output, parameters=weights)
