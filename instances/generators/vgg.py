"""VGG networks, op by op (Simonyan and Zisserman, ICLR 2015); dropout, which costs little, is left out."""

from __future__ import annotations

from ..arrays import require_number
from ..errors import InstanceError
from .builder import GraphBuilder
from .convnet import ConvNet

CONVOLUTIONS: dict[int, tuple[int, int, int, int, int]] = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
"""Convolutions of the five stages by depth (table 1, columns A, B, D and E)."""
SIDE = 7
"""Pixels on a side of what the dense layers see; a 224-pixel image arrives at this size, others are averaged to it."""


def vgg(*, depth: int = 16, image: int = 224, batch: int = 32, classes: int = 1000) -> GraphBuilder:
    """Build a VGG without batch normalisation, and its loss; the default is VGG-16, 138,357,544 parameters.

    Args:
        depth: 11, 13, 16 or 19.
        image: pixels on a side, at least 32.
        batch: images.
        classes: outputs of the last layer.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    for name, value in (("depth", depth), ("image", image), ("batch", batch), ("classes", classes)):
        require_number(value, name, positive=True, whole=True)
    if depth not in CONVOLUTIONS:
        raise InstanceError("depth", f"{depth!r} is not one of {', '.join(map(str, CONVOLUTIONS))}")
    net = ConvNet(image, batch)
    x = net.input()
    for stage, count in enumerate(CONVOLUTIONS[depth]):
        for i in range(1, count + 1):
            name = f"stage{stage + 1}"
            x = net.convolution(f"{name}/conv{i}", x, min(64 * 2**stage, 512), (3, 3), bias=True)
            x = net.relu(f"{name}/relu{i}", x)
        x = net.pool(f"stage{stage + 1}/pool", x, 2, stride=2)
    x = net.adapt("head/pool", x, SIDE)
    for i in (1, 2):
        x = net.relu(f"head/relu{i}", net.dense(f"head/dense{i}", x, 4096))
    net.loss("head/loss", net.dense("head/dense3", x, classes))
    return net.builder
