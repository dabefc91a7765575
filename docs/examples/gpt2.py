"""GPT-2 small (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019) in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):
    """Causal self-attention with one matrix for query, key and value."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same shape."""
        batch, tokens, width = x.shape
        split = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    """Attention and a feed-forward net, each behind a norm and beside a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same shape."""
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class GPT(nn.Module):
    """A GPT-2 whose head shares the token embedding's matrix; dropout is left out."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, context: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits (batch, tokens, vocabulary) and the mean loss of predicting `targets`, both (batch, tokens)."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return logits, functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def build(
    layers: int = 12,
    width: int = 768,
    heads: int = 12,
    vocabulary: int = 50257,
    context: int = 1024,
    sequence: int = 256,
    batch: int = 1,
) -> tuple[GPT, tuple[Tensor, Tensor]]:
    """Return the model and example inputs; the defaults are GPT-2 small, 124,439,808 parameters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GPT(layers, width, heads, vocabulary, context)
        text = torch.randint(vocabulary, (batch, sequence + 1))
    return model, (text[:, :-1], text[:, 1:])


class Logits(GPT):
    """The same without the loss, as pipelines want it: they give the targets to the loss, not to the model."""

    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]
        """Return logits (batch, tokens, vocabulary)."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def tiny() -> tuple[GPT, tuple[Tensor, Tensor]]:
    """Return the same in miniature, for a quick try."""
    return build(layers=4, width=32, heads=4, vocabulary=101, context=16, sequence=16)


def pipelined() -> tuple[Logits, tuple[Tensor]]:
    """Return the miniature without its loss, for torch.distributed.pipelining."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Logits(layers=6, width=32, heads=4, vocabulary=101, context=16)
        return model, (torch.randint(101, (2, 16)),)
