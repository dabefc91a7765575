"""BERT and GPT, op by op as an eager framework runs them."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import require_number
from ..errors import InstanceError
from .builder import GraphBuilder

NORM_FLOPS = 8
SOFTMAX_FLOPS = 5
GELU_FLOPS = 8
"""FLOPs per element, counted on the formulas; these ops are bound by memory on any GPU, so little hangs on them."""


def bert(
    *,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    sequence: int = 128,
    batch: int = 32,
    vocabulary: int = 30522,
    positions: int = 512,
) -> GraphBuilder:
    """Build BERT's encoder with its pooler (Devlin et al., NAACL 2019); the defaults are BERT-base.

    Args:
        layers, hidden, heads: of the encoder; the inner layer of a feed-forward block is `4 * hidden` wide.
        sequence: tokens in a sample, at most `positions`.
        batch: samples.
        vocabulary: rows of the token embedding.
        positions: rows of the position embedding.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    shape = _Shape(layers, hidden, heads, sequence, batch, vocabulary)
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
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    context: int = 1024,
    batch: int = 8,
    vocabulary: int = 50257,
) -> GraphBuilder:
    """Build a GPT-2 (Radford et al., 2019) with its tied output head and loss; the defaults are GPT-2 small.

    A layer has 14 forward ops: ``generate("gpt", layers=178)`` has 4,996 ops, backward ones included.

    Args:
        layers, hidden, heads: of the decoder; the inner layer of a feed-forward block is `4 * hidden` wide.
        context: tokens in a sample, and rows of the position embedding.
        batch: samples.
        vocabulary: rows of the token embedding, which the output head keeps a copy of.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    require_number(context, "context", positive=True, whole=True)
    shape = _Shape(layers, hidden, heads, context, batch, vocabulary)
    b = GraphBuilder()
    size = shape.tokens * hidden
    words = b.op("embedding/token", flops=0, output=size, parameters=vocabulary * hidden, touched=size)
    place = b.op("embedding/position", flops=0, output=context * hidden, parameters=context * hidden)
    x = b.op("embedding/sum", words, place, flops=size, output=size)
    for i in range(layers):
        name = f"layer{i}"
        x = _residual(b, shape, f"{name}/add1", x, _attention(b, shape, name, _norm(b, shape, f"{name}/norm1", x)))
        x = _residual(b, shape, f"{name}/add2", x, _feed_forward(b, shape, name, _norm(b, shape, f"{name}/norm2", x)))
    x = _norm(b, shape, "head/norm", x)
    logits = shape.tokens * vocabulary
    x = b.op("head/logits", x, flops=2 * hidden * logits, output=logits, shared=vocabulary * hidden)
    b.op("head/loss", x, flops=SOFTMAX_FLOPS * logits, output=shape.tokens)
    return b


@dataclass(frozen=True, slots=True)
class _Shape:
    layers: int
    hidden: int
    heads: int
    sequence: int
    batch: int
    vocabulary: int

    def __post_init__(self) -> None:
        for field in self.__slots__:
            require_number(getattr(self, field), field, positive=True, whole=True)
        if self.hidden % self.heads:
            raise InstanceError("hidden", f"{self.hidden!r} is not a multiple of the {self.heads!r} heads")

    @property
    def tokens(self) -> int:
        return self.batch * self.sequence


def _linear(b: GraphBuilder, shape: _Shape, name: str, x: str, *, inner: int, outer: int) -> str:
    flops = 2 * shape.tokens * inner * outer
    return b.op(name, x, flops=flops, output=shape.tokens * outer, parameters=inner * outer + outer)


def _norm(b: GraphBuilder, shape: _Shape, name: str, x: str) -> str:
    size = shape.tokens * shape.hidden
    return b.op(name, x, flops=NORM_FLOPS * size, output=size, parameters=2 * shape.hidden)


def _residual(b: GraphBuilder, shape: _Shape, name: str, x: str, y: str) -> str:
    size = shape.tokens * shape.hidden
    return b.op(name, x, y, flops=size, output=size)


def _attention(b: GraphBuilder, shape: _Shape, name: str, x: str) -> str:
    h, size = shape.hidden, shape.tokens * shape.hidden
    query, key, value = (_linear(b, shape, f"{name}/{part}", x, inner=h, outer=h) for part in ("query", "key", "value"))
    pairs = shape.heads * shape.tokens * shape.sequence
    product = 2 * size * shape.sequence  # a product of activations has two gradients, each as costly as itself
    scores = b.op(f"{name}/scores", query, key, flops=product, output=pairs, gradient=2 * product)
    weights = b.op(f"{name}/softmax", scores, flops=SOFTMAX_FLOPS * pairs, output=pairs)
    mixed = b.op(f"{name}/context", weights, value, flops=product, output=size, gradient=2 * product)
    return _linear(b, shape, f"{name}/projection", mixed, inner=h, outer=h)


def _feed_forward(b: GraphBuilder, shape: _Shape, name: str, x: str) -> str:
    inner = 4 * shape.hidden
    up = _linear(b, shape, f"{name}/up", x, inner=shape.hidden, outer=inner)
    width = shape.tokens * inner
    active = b.op(f"{name}/gelu", up, flops=GELU_FLOPS * width, output=width)
    return _linear(b, shape, f"{name}/down", active, inner=inner, outer=shape.hidden)
