"""No obstacles means that it ran: what torch's splitter, stages or wires refuse is said, with what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from gangplan.instances.torch_model.load import LoadedModel  # noqa: E402
from gangplan.instances.torch_model.ops import Ops, boundaries  # noqa: E402
from gangplan.instances.torch_model.trace import trace  # noqa: E402
from gangplan.torch_split.rehearsal import rehearse  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
X = torch.linspace(-1, 1, 24).reshape(4, 6)


class Two(nn.Module):  # type: ignore[misc]
    """Two layers, with something done before, between and after them."""

    def __init__(self, between: Callable[..., Any] | None = None, after: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
        self.register_buffer("seen", torch.ones(6))
        self.between, self.after = between, after

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        """Map (4, 6) to what `after` makes of (4, 6)."""
        x = self.a(x * scale)
        y = self.b(x if self.between is None else self.between(self, x))
        return y if self.after is None else self.after(y)


class Part(nn.Module):  # type: ignore[misc]
    """A layer and what is done with its result."""

    def __init__(self, done: Callable[..., Any]) -> None:
        super().__init__()
        self.layer, self.done = nn.Linear(6, 6), done

    def forward(self, x: Any) -> Any:
        """Return what is done with the layer's result."""
        return self.done(self, self.layer(x))


class Apart(nn.Module):  # type: ignore[misc]
    """Two parts, the second of which reads what the first makes."""

    def __init__(self, first: Callable[..., Any], second: Callable[..., Any]) -> None:
        super().__init__()
        self.a, self.b = Part(first), Part(second)

    def forward(self, x: Any) -> Any:
        """Return what the second part makes of the first one's result."""
        return self.b(self.a(x))


def same(_: Any, x: Any) -> Any:
    """Return x."""
    return x


def unrecorded(self: Any, x: Any) -> Any:
    """Scale x by a number that has no gradient."""
    with torch.no_grad():
        scale = x.abs().mean()
    return x * scale


def halves(self: Any, x: Any) -> Any:
    """Compute in 16 bits."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return self.layer(x).float()


def shrinks(self: Any, x: Any) -> Any:
    """Write into the second layer's weight."""
    with torch.no_grad():
        self.b.weight.mul_(0.5)
    return x


def counts(self: Any, x: Any) -> Any:
    """Set a buffer anew."""
    self.seen = self.seen + 1
    return x + self.seen


def one_buffer() -> nn.Module:
    """Return two parts that have one buffer between them."""
    module = Apart(lambda self, x: x * self.c, lambda self, x: x + self.c)
    module.a.register_buffer("c", torch.ones(6), persistent=False)
    module.b.register_buffer("c", module.a.c, persistent=False)
    return module


def one_module() -> nn.Module:
    """Return a network with one block under two names."""
    block, other = (Part(lambda self, x: x.tanh()) for _ in range(2))
    return nn.Sequential(block, other, block)


def hyphens() -> nn.Module:
    """Return a network whose modules have odd names."""

    class Odd(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.all = nn.ModuleDict({"in-a": nn.Linear(6, 6), "b c": nn.Linear(6, 6), "in_a": nn.Linear(6, 6)})

        def forward(self, x: Any) -> Any:
            for part in self.all.values():
                x = part(x)
            return x

    return Odd()


class Uncopied(Two):
    """A module of which there are no copies."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("no copies")


def rehearsed(module: nn.Module, at: str, *args: Any, **kwargs: Any) -> list[str]:
    """Rehearse with a cut before a module."""
    model = LoadedModel("mine", module, args or (X,), kwargs)
    ops = Ops(trace(model))
    found = boundaries(ops)
    begin = next((i for i, points in found.items() if (at, "BEGINNING") in points), len(ops.ops) - 1)
    return rehearse(model, ops, [int(i >= begin) for i in range(len(ops.ops))], {at: "BEGINNING"})


@pytest.mark.parametrize(
    ("make", "at", "words"),
    [
        (lambda: Apart(unrecorded, same), "b", "no_grad stands in the way, in a"),
        (lambda: Apart(same, halves), "b", "autocast stands in the way, in b.layer"),
        (lambda: Two(shrinks), "b", "b.weight is a parameter that forward writes into"),
        (
            lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6)), nn.Linear(6, 6)),
            "1",
            "no_grad",
        ),
        (one_module, "1", "(0 and 2)"),
        (one_buffer, "b", "(a.c and b.c): give each module a copy"),
        (lambda: Two(lambda self, x: x.t().clone(memory_format=torch.contiguous_format).t()), "b", "clone, with .cont"),
        (lambda: Two(lambda self, x: x.mean(0, keepdim=True).expand(4, 6)), "b", "mean, with .contiguous()"),
        (lambda: Two(after=lambda x: x.mean()), "b", "loss_fn"),
        (lambda: Two(after=lambda x: (x, x)), "b", "return each tensor once"),
        (lambda: Two(counts), "b", "keep that out of its forward"),
        (lambda: Two(lambda self, x: self.b(x)), "b", "make 3 stages, not 2"),
    ],
)
def test_what_stands_in_the_way_is_said(make: Callable[[], nn.Module], at: str, words: str) -> None:
    """Each model that torchrun would die of is refused with its remedy, in one line."""
    (obstacle,) = rehearsed(make(), at)
    assert words in obstacle and "\n" not in obstacle, obstacle


def test_a_constant_among_the_inputs() -> None:
    """An input that is no tensor is a constant of torch's trace, which its first stage no longer takes."""
    (obstacle,) = rehearsed(Two(), "b", X, scale=2.0)
    assert "make them defaults of forward" in obstacle


def test_a_conjugate_is_not_sent() -> None:
    """What is conjugated only when it is read cannot pass between processes."""

    class Waves(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Part(lambda self, x: torch.fft.rfft(x).conj()), Back()

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    class Back(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.fft.irfft(x, n=6)

    (obstacle,) = rehearsed(Waves(), "b")
    assert "resolve_conj()" in obstacle


def test_weights_without_numbers() -> None:
    """A model on the meta device can be split, but not run."""
    (obstacle,) = rehearsed(Two().to("meta"), "b", X.to("meta"))
    assert "meta device" in obstacle


@pytest.mark.parametrize(
    ("make", "at"),
    [
        (hyphens, "all.b c"),
        (lambda: Two(after=lambda x: {"y": x, "none": None, "more": (x * 2,)}), "b"),
        (lambda: Two(after=lambda x: x.t().unsqueeze(0)), "b"),
        (lambda: nn.DataParallel(Two()), "module.b"),
        (Uncopied, "b"),
        (lambda: nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 6), nn.BatchNorm1d(6)), "2"),
        (lambda: nn.Sequential(nn.Linear(6, 6), nn.Dropout(), nn.Linear(6, 6)), "2"),
    ],
)
def test_what_runs_is_left_as_it_was(make: Callable[[], nn.Module], at: str) -> None:
    """A model that runs has no obstacle, and keeps its buffers and the calls of its modules."""
    module = make()
    before = {name: x.clone() for name, x in module.named_buffers()}
    assert rehearsed(module, at) == []
    assert all(torch.equal(x, before[name]) for name, x in module.named_buffers())
    assert not any("forward" in part.__dict__ or "_orig_forward" in part.__dict__ for part in module.modules())


def test_a_module_called_several_times_names_no_cut() -> None:
    """ALBERT calls one block several times in a row: torch would cut at each call, so no cut is named after it."""

    class Albert(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.block = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x: Any) -> Any:
            x = self.embedding(x)
            for _ in range(3):
                x = self.block(x)
            return x

    ops = Ops(trace(LoadedModel("albert", Albert(), (X,), {})))
    assert boundaries(ops) == {1: [("embedding", "END")]}
    twice = Ops(trace(LoadedModel("twice", one_module(), (X,), {})))
    assert {name for points in boundaries(twice).values() for name, _ in points} == {"1", "1.layer"}
