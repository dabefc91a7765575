"""A transformer as a chain of blocks: what each kind of block computes, keeps and sends for a token."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..arrays import IntArray, check_fields, limited
from ..errors import InstanceError

LEVELS = ("none", "selective", "full")
"""What a layer computes again before its backward pass: nothing, norms and activation functions, or all of it."""

MOST_LAYERS, MOST = 4096, 2**31 - 1
"""Sizes beyond these are mistyped, and would take memory or minutes to refuse."""


@dataclass(frozen=True, slots=True)
class Block:
    """What one kind of block holds, and what it does for a token; bytes are of numbers of 16 bits.

    Attributes:
        name: ``embedding``, ``dense``, ``experts`` or ``head``.
        weights: parameters that tensor parallelism divides.
        expert_weights: parameters of all experts, which expert parallelism divides.
        multiplied: weights that a token is multiplied with, those of experts apart.
        expert_multiplied: the same of experts.
        pair: FLOPs of attention for a token and one that it sees.
        moved: bytes that norms, activation functions and sums read and write.
        kept: bytes kept for the backward pass, by what is computed again, see `LEVELS`.
        reduced: bytes that each all-gather and each reduce-scatter of tensor parallelism agrees on, of which a forward
            pass has `reductions` each.
        reductions: how many.
        shifted: bytes of keys and values that context parallelism passes around.
        routed: bytes that go to experts, and come back.
    """

    name: str
    weights: float = 0.0
    expert_weights: float = 0.0
    multiplied: float = 0.0
    expert_multiplied: float = 0.0
    pair: float = 0.0
    moved: float = 0.0
    kept: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reduced: float = 0.0
    reductions: int = 0
    shifted: float = 0.0
    routed: float = 0.0


@dataclass(frozen=True, slots=True)
class Transformer:
    """A decoder-only transformer; most names are those of a Hugging Face ``config.json``.

    Attributes:
        name: what reports call it.
        layers: how many.
        width: of the hidden state.
        heads: of attention.
        kv_heads: of keys and values.
        head: width of a head.
        vocabulary: how many tokens there are.
        feedforward: width of the feed-forward network of a layer without experts.
        gated: whether the feed-forward network has a third matrix (SwiGLU).
        tied: whether the head is the embedding once more.
        experts: of a layer, 0 if no layer has any.
        active: experts that a token goes to.
        expert_feedforward: width of an expert.
        shared_feedforward: width of all experts together that see every token.
        first_dense: how many layers at the beginning have no experts.
        window: tokens that windowed attention sees, 0 if all layers see all.
        windowed: layers with such a window.
        query_rank, kv_rank, rope: of latent attention (DeepSeek-V2, arXiv 2405.04434): ranks of what queries, and keys
            and values, are compressed to (0: not compressed), and width of the part of a head that carries positions.
        value_head: width of a head's values, 0 if that of the head.
    """

    name: str
    layers: int = field(metadata={"positive": True, "most": MOST_LAYERS})
    width: int = field(metadata={"positive": True, "most": MOST})
    heads: int = field(metadata={"positive": True, "most": MOST})
    kv_heads: int = field(metadata={"positive": True, "most": MOST})
    head: int = field(metadata={"positive": True, "most": MOST})
    vocabulary: int = field(metadata={"positive": True, "most": MOST})
    feedforward: int = limited(0, most=MOST)
    gated: bool = True
    tied: bool = False
    experts: int = limited(0, most=MOST)
    active: int = limited(0, most=MOST)
    expert_feedforward: int = limited(0, most=MOST)
    shared_feedforward: int = limited(0, most=MOST)
    first_dense: int = 0
    window: int = limited(0, most=MOST)
    windowed: int = 0
    query_rank: int = limited(0, most=MOST)
    kv_rank: int = limited(0, most=MOST)
    rope: int = limited(0, most=MOST)
    value_head: int = limited(0, most=MOST)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.heads % self.kv_heads:
            raise InstanceError("kv_heads", f"{self.kv_heads} do not divide {self.heads} heads")
        if self.active > self.experts:
            raise InstanceError("active", f"{self.active} of {self.experts} experts")
        if self.experts and not (self.active and self.expert_feedforward):
            raise InstanceError("active", f"{self.experts} experts of width {self.expert_feedforward}, none is active")
        if self.first_dense > self.layers or self.windowed > self.layers:
            name = "first_dense" if self.first_dense > self.layers else "windowed"
            raise InstanceError(name, f"{getattr(self, name)} of {self.layers} layers")
        if not self.feedforward and (not self.experts or self.first_dense):
            raise InstanceError("feedforward", "0, but there are layers without experts")

    @property
    def parameters(self) -> float:
        """How many weights there are, a tied head counted once."""
        blocks = self.blocks()
        count = sum(blocks[kind].weights + blocks[kind].expert_weights for kind in self.chain().tolist())
        return float(count - self.tied * self.width * self.vocabulary)

    @property
    def active_parameters(self) -> float:
        """How many weights a token is multiplied with, the head included."""
        blocks = self.blocks()
        return float(sum(blocks[x].multiplied + blocks[x].expert_multiplied for x in self.chain().tolist()))

    def chain(self) -> IntArray:
        """Return the kind of each block from embedding to head, indices into `blocks`, int32 (layers + 2,)."""
        dense = self.first_dense if self.experts else self.layers
        return np.repeat(np.arange(4, dtype=np.int32), [1, dense, self.layers - dense, 1])

    def flops(self, sequence: int) -> float:
        """Return the FLOPs of a training step for a token, three times those of the forward pass, nothing twice."""
        blocks = self.blocks()
        seen = self.seen(sequence)
        each: list[float] = [2 * (x.multiplied + x.expert_multiplied) + x.pair * seen for x in blocks]
        return 3.0 * float(sum(each[kind] for kind in self.chain().tolist()))

    def seen(self, sequence: int) -> float:
        """Return how many tokens one sees in the mean, itself included."""
        w = min(self.window, sequence) if self.windowed else sequence
        windowed = w - w * (w - 1) / (2 * sequence)
        share = self.windowed / self.layers
        return share * windowed + (1 - share) * (sequence + 1) / 2

    def blocks(self) -> tuple[Block, Block, Block, Block]:
        """Return the kinds of block: embedding, layer without experts, layer with experts, head."""
        h, head, value = self.width, self.head, self.value_head or self.head
        queries, values, keys = self.heads * head, self.heads * value, self.kv_heads * head
        if self.kv_rank:  # latent attention
            ranks = [(h, self.query_rank), (self.query_rank or h, queries)] if self.query_rank else [(h, queries)]
            up = self.heads * (head - self.rope + value)
            attention = sum(a * b for a, b in ranks) + h * (self.kv_rank + self.rope) + self.kv_rank * up + values * h
            sent, inner = 2.0 * self.heads * (head + value), 2.0 * (self.query_rank + self.kv_rank + self.rope)
        else:
            attention = h * (queries + keys + self.kv_heads * value) + values * h
            sent, inner = 2.0 * self.kv_heads * (head + value), 0.0
        matrices, acts = (3, 3) if self.gated else (2, 2)
        core = 2.0 * (queries + values) + sent + inner  # queries, keys, values and what attention returns
        at = {"pair": 2.0 * (queries + values), "shifted": sent, "reduced": 2.0 * h}

        def layer(name: str, wide: int, experts: int) -> Block:
            """Return a layer with a network of some width for all tokens, and so many experts."""
            one = matrices * h * self.expert_feedforward
            router = h * experts
            narrow = self.active * self.expert_feedforward if experts else 0
            acted, out = 2.0 * (wide + narrow), 2.0 * h * self.active if experts else 0.0
            # input and output of two norms; what the products take; what the experts are sent
            whole = 4 * 2.0 * h + core + acts * acted + out
            less = whole - 2 * 2.0 * h - acted
            return Block(
                name,
                weights=attention + matrices * h * wide + router + 2 * h,
                expert_weights=float(one * experts),
                multiplied=float(attention + matrices * h * wide + router),
                expert_multiplied=float(one * (self.active if experts else 0)),
                moved=2.0 * whole,
                kept=(whole, less, 2.0 * h),
                reductions=1 if experts and not wide else 2,
                routed=out,
                **at,
            )

        table = float(h * self.vocabulary)
        logits = 4.0 * self.vocabulary + 2.0 * self.vocabulary
        return (
            Block("embedding", weights=table, moved=4.0 * h, kept=(0.0, 0.0, 0.0), reduced=2.0 * h, reductions=1),
            layer("dense", self.feedforward, 0),
            layer("experts", self.shared_feedforward, self.experts),
            Block(
                "head",
                weights=table + h,
                multiplied=table,
                moved=2 * logits,
                kept=(4.0 * h + logits,) * 3,
                reduced=2.0 * h,
                reductions=1,
            ),
        )
