"""Convolutional networks for square images, op by op: ResNet, VGG, Inception, and the layers they are built of.

ResNet: He et al., CVPR 2016. VGG: Simonyan and Zisserman, ICLR 2015. Inception v3: Szegedy et al., CVPR 2016, with the
widths that torchvision and TensorFlow use; each of its convolutions is three ops: product, batch normalisation, ReLU.
Dropout, which costs little, is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Annotated

from ..arrays import require_counts, require_flag
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
    """Add layers to a graph; each method returns what the layer makes."""

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
        flops = 2 * y.side**2 * multiplied + (y.size if bias else 0)
        return self.make(y, x, flops=flops, parameters=multiplied + (channels if bias else 0))

    def norm(self, name: str, x: FeatureMap) -> FeatureMap:
        """Normalise over the batch."""
        y = replace(x, op=name)
        return self.make(y, x, flops=BATCH_NORM_FLOPS * y.size, parameters=2 * x.channels)

    def relu(self, name: str, x: FeatureMap) -> FeatureMap:
        """Set what is negative to zero."""
        return self.make(replace(x, op=name), x, flops=x.size)

    def pool(self, name: str, x: FeatureMap, kernel: int, *, stride: int, pad: bool = False) -> FeatureMap:
        """Take the largest or the mean of a square window, which cost the same."""
        side = x.side if pad else x.side - kernel + 1
        y = self._map(name, x.channels, (side - 1) // stride + 1)
        return self.make(y, x, flops=kernel**2 * y.size)

    def adapt(self, name: str, x: FeatureMap, side: int) -> FeatureMap:
        """Average to a given side, whatever the side of `x`."""
        y = FeatureMap(name, x.channels, side)
        return self.make(y, x, flops=max(x.size, y.size))

    def concat(self, name: str, *maps: FeatureMap) -> FeatureMap:
        """Put maps of one side after each other."""
        return self.make(FeatureMap(name, sum(x.channels for x in maps), maps[0].side), *maps, flops=0)

    def dense(self, name: str, x: FeatureMap, units: int) -> FeatureMap:
        """Multiply all elements by a matrix and add a bias."""
        y = FeatureMap(name, units, 1)
        return self.make(y, x, flops=(2 * x.size + 1) * units, parameters=(x.size + 1) * units)

    def loss(self, name: str, *logits: FeatureMap) -> None:
        """Sum the cross-entropies of some logits; it is what the backward pass begins with."""
        flops = SOFTMAX_FLOPS * self.batch * sum(x.size for x in logits)
        self.builder.op(name, *(x.op for x in logits), flops=flops, output=self.batch)

    def make(self, y: FeatureMap, *inputs: FeatureMap, flops: int, parameters: int = 0) -> FeatureMap:
        """Add the op that makes `y` of some maps by so many FLOPs a sample."""
        inner, outer = (x.op for x in inputs if x.op), self.batch * y.size
        self.builder.op(y.op, *inner, flops=self.batch * flops, output=outer, parameters=parameters)
        return y

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


def resnet(
    *,
    depth: Annotated[int, "18, 34, 50, 101 or 152"] = 50,
    image: Annotated[int, "pixels on a side"] = 224,
    batch: Annotated[int, "images"] = 32,
    classes: Annotated[int, "outputs of the last layer"] = 1000,
) -> GraphBuilder:
    """Build a ResNet for square images; the stride of a bottleneck is in its 3 x 3 convolution, as is usual now."""
    require_counts(depth=depth, image=image, batch=batch, classes=classes)
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
    y = FeatureMap("head/dense", classes, 1)
    net.make(y, x, flops=2 * x.size * classes, parameters=x.size * classes + classes)
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
    return net.relu(f"{name}/relu", net.make(replace(x, op=f"{name}/add"), x, y, flops=x.size))


CONVOLUTIONS: dict[int, tuple[int, int, int, int, int]] = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
"""Convolutions of the five stages by depth (table 1, columns A, B, D and E)."""
SIDE = 7
"""Pixels on a side of what the dense layers see; a 224-pixel image arrives at this size, others are averaged to it."""


def vgg(
    *,
    depth: Annotated[int, "11, 13, 16 or 19"] = 16,
    image: Annotated[int, "pixels on a side, at least 32"] = 224,
    batch: Annotated[int, "images"] = 32,
    classes: Annotated[int, "outputs of the last layer"] = 1000,
) -> GraphBuilder:
    """Build a VGG without batch normalisation, and its loss; the default is VGG-16, 138,357,544 parameters."""
    require_counts(depth=depth, image=image, batch=batch, classes=classes)
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


def inception(
    *,
    auxiliary: Annotated[bool, "add the classifier that helps training and has no part in inference"] = True,
    image: Annotated[int, "pixels on a side, at least 299 with the auxiliary classifier and 75 without"] = 299,
    batch: Annotated[int, "images"] = 32,
    classes: Annotated[int, "outputs of the last layer"] = 1000,
) -> GraphBuilder:
    """Build Inception v3 with its loss: 27,161,264 parameters, 23,834,568 without the auxiliary classifier."""
    require_flag(auxiliary, "auxiliary")
    require_counts(image=image, batch=batch, classes=classes)
    net = ConvNet(image, batch)
    x = _chain(net, "stem", net.input(), "1:32@3/2 2:32@3! 3:64@3 pool/2 4:80@1 5:192@3!")
    x = net.pool("stem/pool2", x, 3, stride=2)
    for i, pooled in enumerate((32, 64, 64)):
        x = _block(net, f"wide{i}", x, pooled)
    x = _block(net, "reduce1", x)
    for i, width in enumerate((128, 160, 160, 192)):
        x = _block(net, f"factored{i}", x, width)
    logits = [_auxiliary(net, x, classes)] if auxiliary else []
    x = _block(net, "reduce2", x)
    for i in range(2):
        x = _block(net, f"forked{i}", x)
    logits.append(net.dense("head/dense", net.adapt("head/pool", x, 1), classes))
    net.loss("head/loss", *logits)
    return net.builder


BRANCHES: dict[str, tuple[str, ...]] = {
    # figure 5 of the paper, its second branch with a window of 5 x 5
    "wide": ("a:64@1", "b1:48@1 b2:64@5", "c1:64@1 c2:96@3 c3:96@3", "pool d:{}@1"),
    "reduce1": ("a:384@3/2", "b1:64@1 b2:96@3 b3:96@3/2", "pool/2"),
    # figure 6: windows of 7 x 7 as a row after a column
    "factored": (
        *("a:192@1", "b1:{0}@1 b2:{0}@1x7 b3:192@7x1"),
        *("c1:{0}@1 c2:{0}@7x1 c3:{0}@1x7 c4:{0}@7x1 c5:192@1x7", "pool d:192@1"),
    ),
    "reduce2": ("a1:192@1 a2:320@3/2", "b1:192@1 b2:192@1x7 b3:192@7x1 b4:192@3/2", "pool/2"),
    # figure 7: a row beside a column
    "forked": (
        *("a:320@1", "b1:384@1 b=b2:384@1x3|b3:384@3x1"),
        *("c1:448@1 c2:384@3 c=c3:384@1x3|c4:384@3x1", "pool d:192@1"),
    ),
}
"""The branches of each kind of block, see `_chain`; the number in braces is the block's own."""


def _block(net: ConvNet, name: str, x: FeatureMap, width: int = 0) -> FeatureMap:
    """Add a block, whose kind its name begins with: its branches beside one another."""
    branches = BRANCHES[name] if name in BRANCHES else BRANCHES[name[:-1]]
    return net.concat(f"{name}/concat", *(_chain(net, name, x, branch.format(width)) for branch in branches))


def _chain(net: ConvNet, block: str, x: FeatureMap, steps: str) -> FeatureMap:
    """Add steps one after the other.

    ``b2:64@1x7`` is a convolution to 64 channels with a window of 1 x 7, its normalisation and its ReLU; ``/2`` is its
    stride, with which there is no padding, nor with ``!``. ``pool`` is of 3 x 3, ``b=...|...`` two steps side by side.
    """
    for step in steps.split():
        name, _, beside = step.partition("=")
        found = re.fullmatch(r"(\w+):(\d+)@(\d)(?:x(\d))?(/2)?(!)?", step)
        if beside:
            x = net.concat(f"{block}/{name}", *(_chain(net, block, x, one) for one in beside.split("|")))
        elif found is None:
            stride = 2 if step == "pool/2" else 1
            x = net.pool(f"{block}/pool", x, 3, stride=stride, pad=stride == 1)
        else:
            path, window = f"{block}/{found[1]}", (int(found[3]), int(found[4] or found[3]))
            stride, pad = 2 if found[5] else 1, not (found[5] or found[6])
            x = net.convolution(f"{path}/conv", x, int(found[2]), window, stride=stride, pad=pad)
            x = net.relu(f"{path}/relu", net.norm(f"{path}/norm", x))
    return x


def _auxiliary(net: ConvNet, x: FeatureMap, classes: int) -> FeatureMap:
    x = _chain(net, "auxiliary", net.pool("auxiliary/pool", x, 5, stride=3), "1:128@1 2:768@5!")
    return net.dense("auxiliary/dense", net.adapt("auxiliary/mean", x, 1), classes)
