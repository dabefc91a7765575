"""Inception v3, op by op (Szegedy et al., CVPR 2016), with the widths that torchvision and TensorFlow use.

Dropout, which costs little, is left out. A convolution is three ops: the product, batch normalisation, and ReLU.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import require_number
from ..errors import InstanceError
from .builder import GraphBuilder
from .convnet import ConvNet, FeatureMap


def inception(*, auxiliary: bool = True, image: int = 299, batch: int = 32, classes: int = 1000) -> GraphBuilder:
    """Build Inception v3 with its loss: 27,161,264 parameters, 23,834,568 without the auxiliary classifier.

    Args:
        auxiliary: add the classifier that helps training and has no part in inference.
        image: pixels on a side, at least 299 with the auxiliary classifier and 75 without.
        batch: images.
        classes: outputs of the last layer.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    if not isinstance(auxiliary, bool):
        raise InstanceError("auxiliary", f"{auxiliary!r} is not true or false")
    for name, value in (("image", image), ("batch", batch), ("classes", classes)):
        require_number(value, name, positive=True, whole=True)
    net = ConvNet(image, batch)
    x = _stem(net)
    for i, pooled in enumerate((32, 64, 64)):
        x = _wide(_Block(net, f"wide{i}"), x, pooled)
    x = _reduce1(_Block(net, "reduce1"), x)
    for i, width in enumerate((128, 160, 160, 192)):
        x = _factored(_Block(net, f"factored{i}"), x, width)
    logits = [_auxiliary(_Block(net, "auxiliary"), x, classes)] if auxiliary else []
    x = _reduce2(_Block(net, "reduce2"), x)
    for i in range(2):
        x = _forked(_Block(net, f"forked{i}"), x)
    logits.append(net.dense("head/dense", net.adapt("head/pool", x, 1), classes))
    net.loss("head/loss", *logits)
    return net.builder


@dataclass(frozen=True, slots=True)
class _Block:
    """Ops whose names begin alike."""

    net: ConvNet
    name: str

    def conv(
        self, name: str, x: FeatureMap, channels: int, *kernel: int, stride: int = 1, pad: bool = True
    ) -> FeatureMap:
        """Convolve, normalise and rectify; a kernel of one number is square."""
        path = f"{self.name}/{name}"
        window = (kernel[0], kernel[-1])
        x = self.net.convolution(f"{path}/conv", x, channels, window, stride=stride, pad=pad)
        return self.net.relu(f"{path}/relu", self.net.norm(f"{path}/norm", x))

    def pool(self, x: FeatureMap, *, stride: int = 1) -> FeatureMap:
        """Pool windows of 3 x 3, padded unless they shrink the map."""
        return self.net.pool(f"{self.name}/pool", x, 3, stride=stride, pad=stride == 1)

    def concat(self, *maps: FeatureMap) -> FeatureMap:
        """End the block."""
        return self.net.concat(f"{self.name}/concat", *maps)


def _stem(net: ConvNet) -> FeatureMap:
    block = _Block(net, "stem")
    x = block.conv("1", net.input(), 32, 3, stride=2, pad=False)
    x = block.conv("3", block.conv("2", x, 32, 3, pad=False), 64, 3)
    x = block.conv("4", block.pool(x, stride=2), 80, 1, pad=False)
    x = block.conv("5", x, 192, 3, pad=False)
    return net.pool("stem/pool2", x, 3, stride=2)


def _wide(block: _Block, x: FeatureMap, pooled: int) -> FeatureMap:
    """Add figure 5 of the paper, its first branch with a window of 5 x 5."""
    a = block.conv("a", x, 64, 1)
    b = block.conv("b2", block.conv("b1", x, 48, 1), 64, 5)
    c = block.conv("c3", block.conv("c2", block.conv("c1", x, 64, 1), 96, 3), 96, 3)
    return block.concat(a, b, c, block.conv("d", block.pool(x), pooled, 1))


def _reduce1(block: _Block, x: FeatureMap) -> FeatureMap:
    a = block.conv("a", x, 384, 3, stride=2, pad=False)
    b = block.conv("b2", block.conv("b1", x, 64, 1), 96, 3)
    return block.concat(a, block.conv("b3", b, 96, 3, stride=2, pad=False), block.pool(x, stride=2))


def _factored(block: _Block, x: FeatureMap, width: int) -> FeatureMap:
    """Add figure 6: windows of 7 x 7 as a row after a column."""
    a = block.conv("a", x, 192, 1)
    b = block.conv("b2", block.conv("b1", x, width, 1), width, 1, 7)
    b = block.conv("b3", b, 192, 7, 1)
    c = block.conv("c2", block.conv("c1", x, width, 1), width, 7, 1)
    c = block.conv("c4", block.conv("c3", c, width, 1, 7), width, 7, 1)
    c = block.conv("c5", c, 192, 1, 7)
    return block.concat(a, b, c, block.conv("d", block.pool(x), 192, 1))


def _auxiliary(block: _Block, x: FeatureMap, classes: int) -> FeatureMap:
    x = block.net.pool(f"{block.name}/pool", x, 5, stride=3)
    x = block.conv("2", block.conv("1", x, 128, 1), 768, 5, pad=False)
    return block.net.dense(f"{block.name}/dense", block.net.adapt(f"{block.name}/mean", x, 1), classes)


def _reduce2(block: _Block, x: FeatureMap) -> FeatureMap:
    a = block.conv("a2", block.conv("a1", x, 192, 1), 320, 3, stride=2, pad=False)
    b = block.conv("b2", block.conv("b1", x, 192, 1), 192, 1, 7)
    b = block.conv("b4", block.conv("b3", b, 192, 7, 1), 192, 3, stride=2, pad=False)
    return block.concat(a, b, block.pool(x, stride=2))


def _forked(block: _Block, x: FeatureMap) -> FeatureMap:
    """Add figure 7: a row beside a column."""
    a = block.conv("a", x, 320, 1)
    b = block.conv("b1", x, 384, 1)
    b = block.net.concat(f"{block.name}/b", block.conv("b2", b, 384, 1, 3), block.conv("b3", b, 384, 3, 1))
    c = block.conv("c2", block.conv("c1", x, 448, 1), 384, 3)
    c = block.net.concat(f"{block.name}/c", block.conv("c3", c, 384, 1, 3), block.conv("c4", c, 384, 3, 1))
    return block.concat(a, b, c, block.conv("d", block.pool(x), 192, 1))
