"""Convolutional networks for square images, op by op: ResNet, VGG, Inception, and the layers they are built of.

ResNet: He et al., CVPR 2016. VGG: Simonyan and Zisserman, ICLR 2015. Inception v3: Szegedy et al., CVPR 2016, with the
widths that torchvision and TensorFlow use; each of its convolutions is three ops: product, batch normalisation, ReLU.
Dropout, which costs little, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arrays import require_number
from ..errors import InstanceError
from .builder import GraphBuilder
from .language_models import SOFTMAX_FLOPS

BATCH_NORM_FLOPS = 4
"""FLOPs per element; bound by memory on any GPU, so little hangs on it."""


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """The op that makes it (empty for the image itself), its channels, and its side in pixels."""

    op: str
    channels: int
    side: int

    @property
    def size(self) -> int:
        """Elements of one sample."""
        return self.channels * self.side**2


@dataclass(frozen=True, slots=True)
class ConvNet:
    """Add layers to a graph; each method returns what the layer makes.

    Attributes:
        image: pixels on a side of the images, and `batch` of them.
        builder: collects the ops.
    """

    image: int
    batch: int
    builder: GraphBuilder = field(default_factory=GraphBuilder)

    def input(self) -> FeatureMap:
        """Return the image, of three channels."""
        return FeatureMap("", 3, self.image)

    def convolution(
        self,
        name: str,
        x: FeatureMap,
        channels: int,
        kernel: tuple[int, int],
        *,
        stride: int = 1,
        pad: bool = True,
        bias: bool = False,
    ) -> FeatureMap:
        """Convolve; `pad` adds half a kernel on every side, without which the kernel has to be square."""
        side = x.side if pad else x.side - max(kernel) + 1
        y = self._map(name, channels, (side - 1) // stride + 1)
        multiplied = kernel[0] * kernel[1] * x.channels * channels
        self.builder.op(
            name,
            *((x.op,) if x.op else ()),
            flops=self.batch * (2 * y.side**2 * multiplied + (y.size if bias else 0)),
            output=self.batch * y.size,
            parameters=multiplied + (channels if bias else 0),
        )
        return y

    def norm(self, name: str, x: FeatureMap) -> FeatureMap:
        """Normalise over the batch."""
        size = self.batch * x.size
        self.builder.op(name, x.op, flops=BATCH_NORM_FLOPS * size, output=size, parameters=2 * x.channels)
        return FeatureMap(name, x.channels, x.side)

    def relu(self, name: str, x: FeatureMap) -> FeatureMap:
        """Set what is negative to zero."""
        size = self.batch * x.size
        self.builder.op(name, x.op, flops=size, output=size)
        return FeatureMap(name, x.channels, x.side)

    def pool(self, name: str, x: FeatureMap, kernel: int, *, stride: int, pad: bool = False) -> FeatureMap:
        """Take the largest or the mean of a square window, which cost the same."""
        side = x.side if pad else x.side - kernel + 1
        y = self._map(name, x.channels, (side - 1) // stride + 1)
        self.builder.op(name, x.op, flops=kernel**2 * self.batch * y.size, output=self.batch * y.size)
        return y

    def adapt(self, name: str, x: FeatureMap, side: int) -> FeatureMap:
        """Average to a given side, whatever the side of `x`."""
        y = FeatureMap(name, x.channels, side)
        self.builder.op(name, x.op, flops=self.batch * max(x.size, y.size), output=self.batch * y.size)
        return y

    def concat(self, name: str, *maps: FeatureMap) -> FeatureMap:
        """Put maps of one side after each other."""
        y = FeatureMap(name, sum(x.channels for x in maps), maps[0].side)
        self.builder.op(name, *(x.op for x in maps), flops=0, output=self.batch * y.size)
        return y

    def dense(self, name: str, x: FeatureMap, units: int) -> FeatureMap:
        """Multiply all elements by a matrix and add a bias."""
        self.builder.op(
            name,
            x.op,
            flops=self.batch * (2 * x.size + 1) * units,
            output=self.batch * units,
            parameters=(x.size + 1) * units,
        )
        return FeatureMap(name, units, 1)

    def loss(self, name: str, *logits: FeatureMap) -> None:
        """Sum the cross-entropies of some logits; it is what the backward pass begins with."""
        flops = SOFTMAX_FLOPS * self.batch * sum(x.size for x in logits)
        self.builder.op(name, *(x.op for x in logits), flops=flops, output=self.batch)

    def _map(self, name: str, channels: int, side: int) -> FeatureMap:
        if side < 1:
            raise InstanceError("image", f"{self.image!r} is too small: nothing is left of it at {name}")
        return FeatureMap(name, channels, side)


BLOCKS: dict[int, tuple[int, int, int, int]] = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
"""Blocks of the four stages by depth (table 1); two convolutions a block below 50 layers, three from there on."""


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
    net = ConvNet(image, batch)
    x = net.convolution("stem/conv", net.input(), 64, (7, 7), stride=2)
    x = net.pool("stem/pool", net.relu("stem/relu", net.norm("stem/norm", x)), 3, stride=2, pad=True)
    for stage, blocks in enumerate(BLOCKS[depth]):
        for i in range(blocks):
            stride = 2 if stage and not i else 1
            x = _residual(net, f"stage{stage + 1}/block{i}", x, 64 * 2**stage, stride=stride, deep=depth >= 50)
    x = net.adapt("head/pool", x, 1)
    flops, weights = 2 * batch * x.size * classes, x.size * classes + classes
    net.builder.op("head/dense", x.op, flops=flops, output=batch * classes, parameters=weights)
    return net.builder


def _residual(net: ConvNet, name: str, x: FeatureMap, width: int, *, stride: int, deep: bool) -> FeatureMap:
    steps = [(1, 1, width), (3, stride, width), (1, 1, 4 * width)] if deep else [(3, stride, width), (3, 1, width)]
    y = x
    for i, (kernel, step, channels) in enumerate(steps, start=1):
        y = net.convolution(f"{name}/conv{i}", y, channels, (kernel, kernel), stride=step)
        y = net.norm(f"{name}/norm{i}", y)
        if i < len(steps):
            y = net.relu(f"{name}/relu{i}", y)
    if stride > 1 or x.channels != y.channels:
        x = net.convolution(f"{name}/shortcut", x, y.channels, (1, 1), stride=stride)
        x = net.norm(f"{name}/shortcut_norm", x)
    size = net.batch * x.size
    net.builder.op(f"{name}/add", x.op, y.op, flops=size, output=size)
    return net.relu(f"{name}/relu", FeatureMap(f"{name}/add", x.channels, x.side))


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
