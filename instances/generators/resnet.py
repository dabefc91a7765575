"""ResNets, op by op (He et al., CVPR 2016)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arrays import require_number
from ..errors import InstanceError
from .builder import GraphBuilder

BLOCKS: dict[int, tuple[int, int, int, int]] = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
"""Blocks of the four stages by depth (table 1); two convolutions a block below 50 layers, three from there on."""
BATCH_NORM_FLOPS = 4
"""FLOPs per element; bound by memory on any GPU, so little hangs on it."""


def resnet(*, depth: int = 50, image: int = 224, batch: int = 32, classes: int = 1000) -> GraphBuilder:
    """Build a ResNet for square images; the stride of a bottleneck is in its 3 x 3 convolution, as is usual now.

    Args:
        depth: 18, 34, 50, 101 or 152.
        image: pixels on a side.
        batch: images.
        classes: outputs of the last layer.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    for name, value in (("depth", depth), ("image", image), ("batch", batch), ("classes", classes)):
        require_number(value, name, positive=True, whole=True)
    if depth not in BLOCKS:
        raise InstanceError("depth", f"{depth!r} is not one of {', '.join(map(str, BLOCKS))}")
    net = _Net(batch)
    x = net.convolution("stem/conv", _Map("", 3, image), 64, kernel=7, stride=2)
    x = net.pool(net.relu(net.norm(x, "stem/norm"), "stem/relu"), "stem/pool")
    for stage, blocks in enumerate(BLOCKS[depth]):
        for i in range(blocks):
            stride = 2 if stage and not i else 1
            x = _block(net, f"stage{stage + 1}/block{i}", x, 64 * 2**stage, stride=stride, deep=depth >= 50)
    b = net.builder
    pooled = b.op("head/pool", x.op, flops=batch * x.size, output=batch * x.channels)
    flops, weights = 2 * batch * x.channels * classes, x.channels * classes + classes
    b.op("head/dense", pooled, flops=flops, output=batch * classes, parameters=weights)
    return b


def _block(net: _Net, name: str, x: _Map, width: int, *, stride: int, deep: bool) -> _Map:
    steps = [(1, 1, width), (3, stride, width), (1, 1, 4 * width)] if deep else [(3, stride, width), (3, 1, width)]
    y = x
    for i, (kernel, step, channels) in enumerate(steps, start=1):
        y = net.norm(net.convolution(f"{name}/conv{i}", y, channels, kernel, step), f"{name}/norm{i}")
        if i < len(steps):
            y = net.relu(y, f"{name}/relu{i}")
    if stride > 1 or x.channels != y.channels:
        x = net.norm(net.convolution(f"{name}/shortcut", x, y.channels, 1, stride), f"{name}/shortcut_norm")
    return net.relu(net.add(x, y, f"{name}/add"), f"{name}/relu")


@dataclass(frozen=True, slots=True)
class _Map:
    """A feature map: the op that makes it, its channels and its side."""

    op: str
    channels: int
    side: int

    @property
    def size(self) -> int:
        return self.channels * self.side**2


@dataclass(frozen=True, slots=True)
class _Net:
    batch: int
    builder: GraphBuilder = field(default_factory=GraphBuilder)

    def convolution(self, name: str, x: _Map, channels: int, kernel: int, stride: int) -> _Map:
        side = (x.side + 2 * (kernel // 2) - kernel) // stride + 1
        y = _Map(name, channels, side)
        weights = kernel**2 * x.channels * channels
        inputs = (x.op,) if x.op else ()
        flops = 2 * self.batch * side**2 * weights
        self.builder.op(name, *inputs, flops=flops, output=self.batch * y.size, parameters=weights)
        return y

    def norm(self, x: _Map, name: str) -> _Map:
        size = self.batch * x.size
        self.builder.op(name, x.op, flops=BATCH_NORM_FLOPS * size, output=size, parameters=2 * x.channels)
        return _Map(name, x.channels, x.side)

    def relu(self, x: _Map, name: str) -> _Map:
        self.builder.op(name, x.op, flops=self.batch * x.size, output=self.batch * x.size)
        return _Map(name, x.channels, x.side)

    def add(self, x: _Map, y: _Map, name: str) -> _Map:
        self.builder.op(name, x.op, y.op, flops=self.batch * x.size, output=self.batch * x.size)
        return _Map(name, x.channels, x.side)

    def pool(self, x: _Map, name: str) -> _Map:
        y = _Map(name, x.channels, (x.side - 1) // 2 + 1)  # 3 x 3, stride 2, padded by 1
        self.builder.op(name, x.op, flops=9 * self.batch * y.size, output=self.batch * y.size)
        return y
