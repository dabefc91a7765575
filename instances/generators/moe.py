"""A mixture-of-experts GPT, op by op (Lepikhin et al., "GShard", ICLR 2021; Rajbhandari et al., "DeepSpeed-MoE",
ICML 2022)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

from ..arrays import require_number
from ..errors import InstanceError
from .builder import GraphBuilder
from .transformer import SOFTMAX_FLOPS, _attention, _feed_forward, _norm, _residual, _Shape


def moe(
    *,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    context: int = 1024,
    batch: int = 8,
    vocabulary: int = 50257,
    experts: int = 8,
    top_k: int = 2,
    capacity: float = 1.0,
) -> GraphBuilder:
    """Build a GPT whose every second feed-forward block is a choice among experts, with its tied head and loss.

    All experts are ops, so that they can be spread over devices. The default has 322,818,816 parameters, of which a
    token uses 152,811,264: those of 2 of 8 experts in 6 layers, and all others. Every expert has its own dispatch op,
    which reads all tokens, as a mask does, and hands on the expert's share; tokens choose evenly.

    Args:
        layers: of the decoder, at least 2; the second, fourth and so on have experts.
        hidden, heads: of the decoder; the inner layer of a feed-forward block or expert is `4 * hidden` wide.
        context: tokens in a sample, and rows of the position embedding.
        batch: samples.
        vocabulary: rows of the token embedding, which the output head keeps a copy of.
        experts: of each layer that has some.
        top_k: experts a token goes to.
        capacity: tokens an expert has room for, as a multiple of an even share; rounded up, and filled.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    for name, value in (("context", context), ("experts", experts), ("top_k", top_k)):
        require_number(value, name, positive=True, whole=True)
    require_number(capacity, "capacity", positive=True)
    shape = _Shape(layers, hidden, heads, context, batch, vocabulary)
    if layers < 2:
        raise InstanceError("layers", f"{layers!r} leaves no second layer for the experts")
    if top_k > experts:
        raise InstanceError("top_k", f"{top_k!r} is more than the {experts!r} experts")
    room = ceil(Fraction(capacity) * top_k * shape.tokens / experts)
    if room >= 2**63:
        raise InstanceError("capacity", f"{capacity!r} gives an expert room for {room} tokens, beyond any computer")
    b = GraphBuilder()
    size = shape.tokens * hidden
    words = b.op("embedding/token", flops=0, output=size, parameters=vocabulary * hidden, touched=size)
    place = b.op("embedding/position", flops=0, output=context * hidden, parameters=context * hidden)
    x = b.op("embedding/sum", words, place, flops=size, output=size)
    for i in range(layers):
        name = f"layer{i}"
        x = _residual(b, shape, f"{name}/add1", x, _attention(b, shape, name, _norm(b, shape, f"{name}/norm1", x)))
        y = _norm(b, shape, f"{name}/norm2", x)
        y = _experts(b, shape, name, y, experts, top_k, room) if i % 2 else _feed_forward(b, shape, name, y)
        x = _residual(b, shape, f"{name}/add2", x, y)
    x = _norm(b, shape, "head/norm", x)
    logits = shape.tokens * vocabulary
    x = b.op("head/logits", x, flops=2 * hidden * logits, output=logits, shared=vocabulary * hidden)
    b.op("head/loss", x, flops=SOFTMAX_FLOPS * logits, output=shape.tokens)
    return b


def _experts(b: GraphBuilder, shape: _Shape, name: str, x: str, experts: int, top_k: int, room: int) -> str:
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
