"""What convolutional networks for square images are built of."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import InstanceError
from .builder import GraphBuilder
from .resnet import BATCH_NORM_FLOPS
from .transformer import SOFTMAX_FLOPS


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
