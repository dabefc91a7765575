"""How the step-time policy is trained, loaded and judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangplan.instances import InstanceError

from ..policy.recipe import Recipe
from ..training.stages import Stage
from .settings import Settings

if TYPE_CHECKING:
    from ..training.checkpoint import Tensors
    from .network import StepNetwork

RL_FIRST = 1_000_000
"""The first training seed of the policy gradient, behind those of the lessons."""


def stages(settings: Settings, device: str, seed: int) -> list[Stage]:
    """Return imitation of near-optimal settings, then the policy gradient; either may be left out."""
    if not settings.imitation_updates and not settings.rl_updates:
        raise InstanceError("rl_updates", "is 0, as is imitation_updates: nothing would be trained")
    made = []
    if settings.imitation_updates:
        every = 2 * settings.validate_every
        made.append(Stage("imitation", _imitation(settings, seed), settings.imitation_updates, every))
    if settings.rl_updates:
        made.append(Stage("rl", _rl(settings, seed), settings.rl_updates, settings.validate_every))
    return made


def _imitation(settings: Settings, seed: int) -> Callable[[Tensors | None], Any]:
    def make_learner(before: Tensors | None) -> Any:
        from .choose import imitation_loss
        from .table import names, tabulate

        network = _start(settings, seed, before)
        examples = tabulate(
            names(settings.families, settings.cases, settings.size, "train"),
            network.book.numpy(),
            messages=settings.rounds > 0,
        )

        def loss(chosen: Any, rng: Any) -> Any:
            return imitation_loss(network, chosen, settings.temperature)

        updates, rate = settings.imitation_updates, settings.imitation_rate
        return _learner(
            network, examples, loss, _validation(settings, network, large=False), settings, updates, rate, seed
        )

    return make_learner


def _rl(settings: Settings, seed: int) -> Callable[[Tensors | None], Any]:
    def make_learner(before: Tensors | None) -> Any:
        from .choose import gradient_loss
        from .table import names, tabulate

        network = _start(settings, seed, before)
        if before is not None:
            network.calm(settings.calm)
        chosen = names(settings.families, settings.cases, settings.size, "train")
        for i, size in enumerate(settings.rl_sizes):
            chosen += names(settings.families, settings.rl_cases, size, "train", RL_FIRST * (i + 1))
        examples = tabulate(chosen, network.book.numpy(), messages=settings.rounds > 0)

        def loss(chosen: Any, rng: Any) -> Any:
            return gradient_loss(network, chosen)

        updates, rate = settings.rl_updates, settings.rl_rate
        return _learner(
            network, examples, loss, _validation(settings, network, large=True), settings, updates, rate, seed
        )

    return make_learner


def _learner(
    network: StepNetwork,
    examples: Any,
    loss: Any,
    validate: Any,
    settings: Settings,
    updates: int,
    rate: float,
    seed: int,
) -> Any:
    from ..gnn.imitation import Imitation

    return Imitation(
        network, examples, loss, validate, minibatch=settings.minibatch, rate=rate, updates=updates, seed=seed
    )


def _validation(settings: Settings, network: StepNetwork, *, large: bool) -> Callable[[], dict[str, float]]:
    from .choose import figures
    from .table import names, tabulate

    chosen = names(settings.families, settings.validation_cases, settings.size, "validation")
    if large:
        most = max(settings.rl_sizes)
        chosen += names(settings.families, (settings.validation_cases + 1) // 2, most, "validation", RL_FIRST)
    examples = tabulate(chosen, network.book.numpy(), messages=settings.rounds > 0)
    return lambda: figures(network, examples)


def _start(settings: Settings, seed: int, before: Tensors | None) -> StepNetwork:
    """Return the network of the stage before, or a new one with a new book."""
    import torch

    from ..training.state import seeded, under
    from .book import make_book
    from .policy import network_of
    from .table import names

    with seeded(seed):
        network = network_of(settings)
    if before is not None:
        network.load_state_dict(under("policy", before))
        return network
    chosen = names(settings.families, settings.book_cases, settings.size, "train")
    chosen += names(settings.families, settings.book_cases // 8, settings.book_size, "train", RL_FIRST // 2)
    network.book.copy_(torch.from_numpy(make_book(tuple(chosen), settings.drawn, settings.book, seed)))
    return network


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import StepPolicy

    return StepPolicy.load(path)


def evaluate(policy: Any, seeds: Any, *, family: str = "pipeline", size: int = 100) -> list[dict[str, Any]]:
    """Return makespans beside those of the heuristics, see `gangplan.learned.step.evaluate`.

    Args:
        policy: the learned one.
        seeds: indices into the split ``test``.
        family: of the instances.
        size: their most ops.
    """
    from .evaluate import evaluate as judge

    return judge(policy, seeds, family=family, size=size)


def export(policy: Any, path: Path) -> tuple[Path]:
    """Write a policy as ONNX."""
    from .onnx import export as write

    return write(policy, path)


RECIPE = Recipe(
    name="step",
    about="where each op of a training step runs and in which order, so that the step is short",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    export=export,
    data="generated graphs of up to 100 ops, with what each setting in the book makes of them; RL on larger ones too",
    seeds=lambda settings, seed: {
        "training": f"split train, from 0 and from {RL_FIRST}",
        "validation": "split validation",
        "run": seed,
    },
)
