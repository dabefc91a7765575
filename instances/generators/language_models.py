"""Language models, op by op as an eager framework runs them: BERT, GPT, mixtures of experts, GNMT.

Mixtures: Lepikhin et al., "GShard", ICLR 2021; Rajbhandari et al., "DeepSpeed-MoE", ICML 2022. GNMT, an LSTM translator
with attention (Wu et al., arXiv 1609.08144), is the variant of MLPerf Training and of PipeDream's profiles, "GNMT v2":
the first encoder layer reads in both directions; attention (Bahdanau et al., ICLR 2015, not normalised) follows the
first decoder layer and its context goes into every later one; residual connections begin at the third layer of either
side; the embeddings of the two sides and the classifier are three separate matrices. Dropout, which costs little, is
left out. A training step knows the whole target sentence, so that an LSTM layer is one op over all of its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import Annotated

from ..arrays import require_counts, require_number
from ..errors import InstanceError
from .builder import GraphBuilder

NORM_FLOPS = 8
SOFTMAX_FLOPS = 5
GELU_FLOPS = 8
"""FLOPs per element, counted on the formulas; these ops are bound by memory on any GPU, so little hangs on them."""

_OfEncoder = Annotated[int, "of the encoder; the inner layer of a feed-forward block is `4 * hidden` wide"]
_OfDecoder = Annotated[int, "of the decoder; the inner layer of a feed-forward block is `4 * hidden` wide"]
_OfExperts = Annotated[int, "of the decoder; the inner layer of a feed-forward block or expert is `4 * hidden` wide"]


def bert(
    *,
    layers: _OfEncoder = 12,
    hidden: _OfEncoder = 768,
    heads: _OfEncoder = 12,
    sequence: Annotated[int, "tokens in a sample, at most `positions`"] = 128,
    batch: Annotated[int, "samples"] = 32,
    vocabulary: Annotated[int, "rows of the token embedding"] = 30522,
    positions: Annotated[int, "rows of the position embedding"] = 512,
) -> GraphBuilder:
    """Build BERT's encoder with its pooler (Devlin et al., NAACL 2019); the defaults are BERT-base."""
    shape = _ModelShape(layers, hidden, heads, sequence, batch, vocabulary)
    if sequence > positions:
        raise InstanceError("sequence", f"{sequence!r} is more than the {positions!r} positions")
    b = GraphBuilder()
    size = shape.tokens * hidden
    words = b.op("embedding/token", flops=0, output=size, parameters=vocabulary * hidden, touched=size)
    place = b.op("embedding/position", flops=0, output=sequence * hidden, parameters=positions * hidden, touched=size)
    segment = b.op("embedding/segment", flops=0, output=size, parameters=2 * hidden, touched=size)
    x = b.op("embedding/sum", words, place, segment, flops=2 * size, output=size)
    x = _norm(b, shape, "embedding/norm", x)
    for i in range(layers):
        name = f"layer{i}"
        x = _norm(b, shape, f"{name}/norm1", _residual(b, shape, f"{name}/add1", x, _attention(b, shape, name, x)))
        x = _norm(b, shape, f"{name}/norm2", _residual(b, shape, f"{name}/add2", x, _feed_forward(b, shape, name, x)))
    pooled = batch * hidden
    x = b.op("pooler/first_token", x, flops=0, output=pooled)
    x = b.op("pooler/dense", x, flops=2 * pooled * hidden, output=pooled, parameters=hidden * hidden + hidden)
    b.op("pooler/tanh", x, flops=pooled, output=pooled)
    return b


def gpt(
    *,
    layers: _OfDecoder = 12,
    hidden: _OfDecoder = 768,
    heads: _OfDecoder = 12,
    context: Annotated[int, "tokens in a sample, and rows of the position embedding"] = 1024,
    batch: Annotated[int, "samples"] = 8,
    vocabulary: Annotated[int, "rows of the token embedding, which the output head keeps a copy of"] = 50257,
) -> GraphBuilder:
    """Build a GPT-2 (Radford et al., 2019) with its tied output head and loss; the defaults are GPT-2 small.

    A layer has 14 forward ops: ``generate("gpt", layers=178)`` has 4,996 ops, backward ones included.
    """
    require_counts(context=context)
    shape = _ModelShape(layers, hidden, heads, context, batch, vocabulary)
    return _decoder_only(shape, lambda b, name, i, x: _feed_forward(b, shape, name, x))


def _decoder_only(shape: _ModelShape, block: Callable[[GraphBuilder, str, int, str], str]) -> GraphBuilder:
    """Build a GPT whose layers each have attention and a `block`: of a builder, a name, a layer and an input."""
    b = GraphBuilder()
    hidden, context, size = shape.hidden, shape.sequence, shape.tokens * shape.hidden
    words = b.op("embedding/token", flops=0, output=size, parameters=shape.vocabulary * hidden, touched=size)
    place = b.op("embedding/position", flops=0, output=context * hidden, parameters=context * hidden)
    x = b.op("embedding/sum", words, place, flops=size, output=size)
    for i in range(shape.layers):
        name = f"layer{i}"
        x = _residual(b, shape, f"{name}/add1", x, _attention(b, shape, name, _norm(b, shape, f"{name}/norm1", x)))
        y = block(b, name, i, _norm(b, shape, f"{name}/norm2", x))
        x = _residual(b, shape, f"{name}/add2", x, y)
    x = _norm(b, shape, "head/norm", x)
    logits = shape.tokens * shape.vocabulary
    x = b.op("head/logits", x, flops=2 * hidden * logits, output=logits, shared=shape.vocabulary * hidden)
    b.op("head/loss", x, flops=SOFTMAX_FLOPS * logits, output=shape.tokens)
    return b


@dataclass(frozen=True, slots=True)
class _ModelShape:
    layers: int
    hidden: int
    heads: int
    sequence: int
    batch: int
    vocabulary: int

    def __post_init__(self) -> None:
        require_counts(**{name: getattr(self, name) for name in self.__slots__})
        if self.hidden % self.heads:
            raise InstanceError("hidden", f"{self.hidden!r} is not a multiple of the {self.heads!r} heads")

    @property
    def tokens(self) -> int:
        return self.batch * self.sequence


def _linear(b: GraphBuilder, shape: _ModelShape, name: str, x: str, *, inner: int, outer: int) -> str:
    flops = 2 * shape.tokens * inner * outer
    return b.op(name, x, flops=flops, output=shape.tokens * outer, parameters=inner * outer + outer)


def _norm(b: GraphBuilder, shape: _ModelShape, name: str, x: str) -> str:
    size = shape.tokens * shape.hidden
    return b.op(name, x, flops=NORM_FLOPS * size, output=size, parameters=2 * shape.hidden)


def _residual(b: GraphBuilder, shape: _ModelShape, name: str, x: str, y: str) -> str:
    size = shape.tokens * shape.hidden
    return b.op(name, x, y, flops=size, output=size)


def _attention(b: GraphBuilder, shape: _ModelShape, name: str, x: str) -> str:
    h, size = shape.hidden, shape.tokens * shape.hidden
    query, key, value = (_linear(b, shape, f"{name}/{part}", x, inner=h, outer=h) for part in ("query", "key", "value"))
    pairs = shape.heads * shape.tokens * shape.sequence
    product = 2 * size * shape.sequence  # a product of activations has two gradients, each as costly as itself
    scores = b.op(f"{name}/scores", query, key, flops=product, output=pairs, gradient=2 * product)
    weights = b.op(f"{name}/softmax", scores, flops=SOFTMAX_FLOPS * pairs, output=pairs)
    mixed = b.op(f"{name}/context", weights, value, flops=product, output=size, gradient=2 * product)
    return _linear(b, shape, f"{name}/projection", mixed, inner=h, outer=h)


def _feed_forward(b: GraphBuilder, shape: _ModelShape, name: str, x: str) -> str:
    inner = 4 * shape.hidden
    up = _linear(b, shape, f"{name}/up", x, inner=shape.hidden, outer=inner)
    width = shape.tokens * inner
    active = b.op(f"{name}/gelu", up, flops=GELU_FLOPS * width, output=width)
    return _linear(b, shape, f"{name}/down", active, inner=inner, outer=shape.hidden)


def moe(
    *,
    layers: Annotated[int, "of the decoder, at least 2; the second, fourth and so on have experts"] = 12,
    hidden: _OfExperts = 768,
    heads: _OfExperts = 12,
    context: Annotated[int, "tokens in a sample, and rows of the position embedding"] = 1024,
    batch: Annotated[int, "samples"] = 8,
    vocabulary: Annotated[int, "rows of the token embedding, which the output head keeps a copy of"] = 50257,
    experts: Annotated[int, "of each layer that has some"] = 8,
    top_k: Annotated[int, "experts a token goes to"] = 2,
    capacity: Annotated[
        float, "tokens an expert has room for, as a multiple of an even share; rounded up, and filled"
    ] = 1.0,
) -> GraphBuilder:
    """Build a GPT whose every second feed-forward block is a choice among experts, with its tied head and loss.

    All experts are ops, so that they can be spread over devices. The default has 322,818,816 parameters, of which a
    token uses 152,811,264: those of 2 of 8 experts in 6 layers, and all others. Every expert has its own dispatch op,
    which reads all tokens, as a mask does, and hands on the expert's share; tokens choose evenly.
    """
    require_counts(context=context, experts=experts, top_k=top_k)
    require_number(capacity, "capacity", positive=True)
    shape = _ModelShape(layers, hidden, heads, context, batch, vocabulary)
    if layers < 2:
        raise InstanceError("layers", f"{layers!r} leaves no second layer for the experts")
    if top_k > experts:
        raise InstanceError("top_k", f"{top_k!r} is more than the {experts!r} experts")
    room = ceil(Fraction(capacity) * top_k * shape.tokens / experts)
    if room >= 2**63:
        raise InstanceError("capacity", f"{capacity!r} gives an expert room for {room} tokens, beyond any computer")

    def block(b: GraphBuilder, name: str, i: int, x: str) -> str:
        return _experts(b, shape, name, x, experts, top_k, room) if i % 2 else _feed_forward(b, shape, name, x)

    return _decoder_only(shape, block)


def _experts(b: GraphBuilder, shape: _ModelShape, name: str, x: str, experts: int, top_k: int, room: int) -> str:
    tokens, h = shape.tokens, shape.hidden
    scores = b.op(f"{name}/router", x, flops=2 * tokens * h * experts, output=tokens * experts, parameters=h * experts)
    # a token's choices: an expert's number and its weight
    choice = b.op(f"{name}/gate", scores, flops=SOFTMAX_FLOPS * tokens * experts, output=2 * tokens * top_k)
    share = replace(shape, sequence=room, batch=1)
    results = []
    for e in range(experts):
        expert = f"{name}/expert{e}"
        taken = b.op(f"{expert}/dispatch", x, choice, flops=0, output=room * h)
        results.append(_feed_forward(b, share, expert, taken))
    # weights times activations: two gradients, each as costly as the product
    product = 2 * experts * room * h
    return b.op(f"{name}/combine", choice, *results, flops=product, output=tokens * h, gradient=2 * product)


LSTM_FLOPS = 9
"""Per element beside the products: three sigmoids and two hyperbolic tangents, three products, one sum."""


def gnmt(
    *,
    layers: Annotated[int, "of the encoder, and of the decoder, at least 2"] = 8,
    hidden: Annotated[int, "width of layers and embeddings"] = 1024,
    source: Annotated[int, "tokens in a sentence of either language"] = 25,
    target: Annotated[int, "tokens in a sentence of either language"] = 25,
    batch: Annotated[int, "sentence pairs"] = 128,
    vocabulary: Annotated[int, "rows of either embedding, and outputs of the classifier"] = 32320,
) -> GraphBuilder:
    """Build GNMT with attention and its loss; the default has 8 layers a side and 277,717,568 parameters.

    PipeDream's ``gnmt_large`` is the default, its ``gnmt`` has ``layers=4, source=48, target=47, batch=32``.
    """
    net = _Translator(layers, hidden, source, target, batch, vocabulary)
    memory = _encoder(net)
    x = _decoder(net, memory)
    logits = batch * target * vocabulary
    weights = hidden * vocabulary + vocabulary
    x = net.builder.op("head/logits", x, flops=2 * hidden * logits, output=logits, parameters=weights)
    net.builder.op("head/loss", x, flops=SOFTMAX_FLOPS * logits, output=batch * target)
    return net.builder


@dataclass(frozen=True, slots=True)
class _Translator:
    layers: int
    hidden: int
    source: int
    target: int
    batch: int
    vocabulary: int
    builder: GraphBuilder = field(default_factory=GraphBuilder)

    def __post_init__(self) -> None:
        require_counts(**{name: getattr(self, name) for name in self.__slots__ if name != "builder"})
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


def _encoder(net: _Translator) -> str:
    length = net.source
    x = net.embedding("encoder/embedding", length)
    ahead, behind = (net.lstm(f"encoder/layer0/{way}", x, length) for way in ("ahead", "behind"))
    x = net.lstm("encoder/layer1/lstm", net.concat("encoder/layer0/concat", ahead, behind, length), length, width=2)
    for i in range(2, net.layers):
        x = net.add(f"encoder/layer{i}/add", net.lstm(f"encoder/layer{i}/lstm", x, length), x, length)
    return x


def _decoder(net: _Translator, memory: str) -> str:
    length = net.target
    first = net.lstm("decoder/layer0/lstm", net.embedding("decoder/embedding", length), length)
    context = _bahdanau(net, first, memory)
    x = first
    for i in range(1, net.layers):
        name = f"decoder/layer{i}"
        y = net.lstm(f"{name}/lstm", net.concat(f"{name}/concat", x, context, length), length, width=2)
        x = net.add(f"{name}/add", y, x, length) if i > 1 else y
    return x


def _bahdanau(net: _Translator, x: str, memory: str) -> str:
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
