"""Networks to trace, in plain PyTorch: small, but of the real shape."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """ResNet's basic block, with the ReLUs in place and a projection where the shape changes."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.downsample = None
        if stride > 1 or inner != outer:
            self.downsample = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        """Map images to images."""
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    """ResNet-18 with narrow layers."""

    def __init__(self, widths: tuple[int, ...] = (8, 16, 24, 32), classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 7, 2, padding=3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True)
        )
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        pairs = zip((widths[0], *widths), widths, strict=False)
        self.layers = nn.Sequential(
            *(
                nn.Sequential(Residual(inner, outer, 1 if i == 0 else 2), Residual(outer, outer, 1))
                for i, (inner, outer) in enumerate(pairs)
            )
        )
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (batch, 3, height, width) to logits (batch, classes)."""
        x = self.layers(self.pool(self.stem(x)))
        return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Encoder(nn.Module):
    """A transformer encoder of torch's own layers, with dropout, and its mean as logits."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.place = nn.Parameter(torch.zeros(12, 16))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 32, dropout, activation="gelu", batch_first=True) for _ in range(3)
        )
        self.head = nn.Linear(16, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (batch, 12) to logits (batch, 5)."""
        x = self.embedding(tokens) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class Explicit(nn.Module):
    """Attention written out in products, and an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(12, 12, bias=bias) for bias in (True, False, True))
        self.lstm = nn.LSTM(12, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, 12) to (batch, tokens, 8)."""
        weights = (self.query(x) @ self.key(x).transpose(1, 2) / 12**0.5).softmax(-1)
        result: Tensor = self.lstm(torch.baddbmm(x, weights, self.value(x)))[0]
        return result


class Writing(nn.Module):
    """Every way of writing: into a value read before and after, into a view, and into a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map (batch, 6) to two tensors."""
        y = self.first(x)
        before = y * 3
        y.add_(1)  # the result is not taken: y itself is read below
        self.seen.add_(y.detach().mean())
        z = self.second(y) + before
        z = z * 1
        z[:, :2] = 0.5  # through a view
        with torch.no_grad():
            scale = z.abs().mean()
        return z / scale, before.mul_(2) + self.seen


class Filling(nn.Module):
    """Memory that is allocated first and written into later, by several layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(6, 3), nn.Linear(6, 3), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map (batch, 6) to two tensors."""
        both = torch.empty(len(x), 6)
        both[:, :3] = self.first(x)
        both[:, 3:] = self.second(x)
        whole = torch.empty_like(both)
        whole[:] = self.third(both)
        return both, whole


class Modes(nn.Module):
    """Automatic types and gradients switched off, one inside the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, 6) to (batch, 4) in 16 bits."""
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.first(x)
            with torch.no_grad():
                scale = self.second(y).float().exp().mean()
            return self.second(y.relu() / scale)


class Batch:
    """An input that `torch.export` does not know."""

    def __init__(self, x: Tensor) -> None:
        self.x = x


class Unknown(nn.Module):
    """A model that takes a `Batch`."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))

    def forward(self, batch: Batch) -> Tensor:
        """Return (batch, 2)."""
        result: Tensor = self.net(batch.x)
        return result


class DataDependent(nn.Module):
    """A model that nobody can trace."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x or its negative."""
        return x if x.sum() > 0 else -x


def _seeded(make: type[nn.Module], *arguments: object) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make(*arguments)


def _noise(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def resnet() -> tuple[nn.Module, tuple[Tensor]]:
    """Return a ResNet in training mode: its norms update their buffers."""
    return _seeded(ResNet), (_noise(2, 3, 32, 32),)


def encoder() -> tuple[nn.Module, tuple[Tensor]]:
    """Return an encoder with dropout."""
    return _seeded(Encoder, 0.1), (torch.arange(24).reshape(2, 12) % 50,)


def still_encoder() -> tuple[nn.Module, tuple[Tensor]]:
    """Return an encoder without dropout."""
    return _seeded(Encoder, 0.0), (torch.arange(24).reshape(2, 12) % 50,)


def explicit() -> tuple[nn.Module, tuple[Tensor]]:
    """Return the model of written-out products."""
    return _seeded(Explicit), (_noise(2, 5, 12),)


def writing() -> tuple[nn.Module, tuple[Tensor]]:
    """Return the model that writes."""
    return _seeded(Writing), (_noise(3, 6),)


def filling() -> tuple[nn.Module, tuple[Tensor]]:
    """Return the model that fills."""
    return _seeded(Filling), (_noise(3, 6),)


def modes() -> tuple[nn.Module, tuple[Tensor]]:
    """Return the model with modes."""
    return _seeded(Modes), (_noise(3, 6),)


def unknown() -> tuple[nn.Module, tuple[Batch]]:
    """Return a model that only `torch.fx` can trace."""
    return _seeded(Unknown), (Batch(_noise(3, 4)),)


def untraceable() -> tuple[nn.Module, tuple[Tensor]]:
    """Return a model that nobody can trace."""
    return DataDependent(), (_noise(3),)


def linear() -> tuple[nn.Module, Tensor]:
    """Return one linear layer, 5 x 3, for 2 samples; the input is no tuple."""
    return _seeded(nn.Linear, 3, 5), torch.ones(2, 3)
