"""GNMT, an LSTM translator with attention, layer by layer (Wu et al., arXiv 1609.08144).

The variant is the one of MLPerf Training and of PipeDream's profiles, "GNMT v2": the first encoder layer reads in both
directions; attention (Bahdanau et al., ICLR 2015, not normalised) follows the first decoder layer and its context goes
into every later one; residual connections begin at the third layer of either side; the embeddings of the two sides
and the classifier are three separate matrices. Dropout, which costs little, is left out. A training step knows the
whole target sentence, so that an LSTM layer is one op over all of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arrays import require_number
from ..errors import InstanceError
from .builder import GraphBuilder
from .transformer import SOFTMAX_FLOPS

LSTM_FLOPS = 9
"""Per element beside the products: three sigmoids and two hyperbolic tangents, three products, one sum."""


def gnmt(
    *,
    layers: int = 8,
    hidden: int = 1024,
    source: int = 25,
    target: int = 25,
    batch: int = 128,
    vocabulary: int = 32320,
) -> GraphBuilder:
    """Build GNMT with attention and its loss; the default has 8 layers a side and 277,717,568 parameters.

    PipeDream's ``gnmt_large`` is the default, its ``gnmt`` has ``layers=4, source=48, target=47, batch=32``.

    Args:
        layers: of the encoder, and of the decoder, at least 2.
        hidden: width of layers and embeddings.
        source, target: tokens in a sentence of either language.
        batch: sentence pairs.
        vocabulary: rows of either embedding, and outputs of the classifier.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    net = _Net(layers, hidden, source, target, batch, vocabulary)
    memory = _encoder(net)
    x = _decoder(net, memory)
    logits = batch * target * vocabulary
    weights = hidden * vocabulary + vocabulary
    x = net.builder.op("head/logits", x, flops=2 * hidden * logits, output=logits, parameters=weights)
    net.builder.op("head/loss", x, flops=SOFTMAX_FLOPS * logits, output=batch * target)
    return net.builder


@dataclass(frozen=True, slots=True)
class _Net:
    layers: int
    hidden: int
    source: int
    target: int
    batch: int
    vocabulary: int
    builder: GraphBuilder = field(default_factory=GraphBuilder)

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "source", "target", "batch", "vocabulary"):
            require_number(getattr(self, name), name, positive=True, whole=True)
        if self.layers < 2:
            raise InstanceError("layers", f"{self.layers!r} is less than 2")

    def embedding(self, name: str, length: int) -> str:
        size = self.batch * length * self.hidden
        return self.builder.op(name, flops=0, output=size, parameters=self.vocabulary * self.hidden, touched=size)

    def lstm(self, name: str, x: str, length: int, *, width: int = 1) -> str:
        """Add a layer whose input is `width` times `hidden` wide, with the two biases that cuDNN has."""
        h, size = self.hidden, self.batch * length * self.hidden
        inputs, recurrent = 4 * h * width * h, 4 * h * h
        return self.builder.op(
            name,
            x,
            flops=2 * self.batch * length * (inputs + recurrent) + LSTM_FLOPS * size,
            output=size,
            parameters=inputs + recurrent + 8 * h,
            # all inputs are multiplied at once, but a step waits for the one before
            touched=inputs + 8 * h + length * recurrent,
        )

    def concat(self, name: str, x: str, y: str, length: int) -> str:
        return self.builder.op(name, x, y, flops=0, output=2 * self.batch * length * self.hidden)

    def add(self, name: str, x: str, y: str, length: int) -> str:
        size = self.batch * length * self.hidden
        return self.builder.op(name, x, y, flops=size, output=size)


def _encoder(net: _Net) -> str:
    length = net.source
    x = net.embedding("encoder/embedding", length)
    ahead, behind = (net.lstm(f"encoder/layer0/{way}", x, length) for way in ("ahead", "behind"))
    x = net.lstm("encoder/layer1/lstm", net.concat("encoder/layer0/concat", ahead, behind, length), length, width=2)
    for i in range(2, net.layers):
        x = net.add(f"encoder/layer{i}/add", net.lstm(f"encoder/layer{i}/lstm", x, length), x, length)
    return x


def _decoder(net: _Net, memory: str) -> str:
    length = net.target
    first = net.lstm("decoder/layer0/lstm", net.embedding("decoder/embedding", length), length)
    context = _attention(net, first, memory)
    x = first
    for i in range(1, net.layers):
        name = f"decoder/layer{i}"
        y = net.lstm(f"{name}/lstm", net.concat(f"{name}/concat", x, context, length), length, width=2)
        x = net.add(f"{name}/add", y, x, length) if i > 1 else y
    return x


def _attention(net: _Net, x: str, memory: str) -> str:
    """Add the context: the mean of the encoder's states, weighted by softmax(v . tanh(W q + U k))."""
    b, h, name = net.builder, net.hidden, "decoder/layer0"
    asked, known = net.batch * net.target * h, net.batch * net.source * h
    query = b.op(f"{name}/query", x, flops=2 * asked * h, output=asked, parameters=h * h)
    key = b.op(f"{name}/key", memory, flops=2 * known * h, output=known, parameters=h * h)
    pairs = net.batch * net.target * net.source
    total = b.op(f"{name}/sum", query, key, flops=pairs * h, output=pairs * h)
    energy = b.op(f"{name}/tanh", total, flops=pairs * h, output=pairs * h)
    scores = b.op(f"{name}/scores", energy, flops=2 * pairs * h, output=pairs, parameters=h)
    weights = b.op(f"{name}/softmax", scores, flops=SOFTMAX_FLOPS * pairs, output=pairs)
    # a product of activations has two gradients, each as costly as itself
    return b.op(f"{name}/context", weights, memory, flops=2 * pairs * h, output=asked, gradient=4 * pairs * h)
