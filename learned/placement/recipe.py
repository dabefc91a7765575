"""How the placement policy is trained, loaded and judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..policy.recipe import Recipe
from ..training.stages import Stage
from .settings import Settings

if TYPE_CHECKING:
    from ..training.checkpoint import Tensors
    from .network import Network


def stages(settings: Settings, device: str, seed: int) -> list[Stage]:
    """Return imitation, in as many passes as are asked for, then the policy gradient, which may be left out."""
    known: list[Any] = []
    made = [
        Stage(f"imitation{i + 1}", _imitation(settings, seed, i, known), settings.updates, settings.validate_every)
        for i in range(settings.passes)
    ]
    if settings.rl_updates:
        every = max(1, settings.rl_updates // 8)
        made.append(Stage("rl", _rl(settings, seed), settings.rl_updates, every))
    return made


def _imitation(settings: Settings, seed: int, number: int, known: list[Any]) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from ..gnn.imitation import Imitation
        from .imitation import labelled, loss_of, validation
        from .policy import PlacementPolicy

        network = _network(settings, seed, before)
        policy = PlacementPolicy(network, settings) if number else None
        known.extend(labelled(settings, policy, number * settings.instances, seed))
        network.train()
        judge = validation(settings)
        return Imitation(
            network, known, loss_of(network, settings), lambda: judge(network), minibatch=settings.minibatch,
            rate=settings.rate, updates=settings.updates, seed=seed + number,
        )  # fmt: skip

    return make


def _rl(settings: Settings, seed: int) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from .batches import prepared, sized, small
        from .imitation import Validation
        from .reinforce import Reinforce

        network = _network(settings, seed, before)
        half = max(1, settings.validation // 3)
        problems = [small("validation", 2000 + i) for i in range(half)]
        problems += [sized("validation", 3000 + i, min(settings.rl_nodes, 64)) for i in range(half)]
        found = [batch for batch in map(prepared, problems) if batch is not None]
        return Reinforce(network, settings, Validation(found, settings), seed)

    return make


def _network(settings: Settings, seed: int, before: Tensors | None) -> Network:

    from ..training.state import seeded, under
    from .network import Network

    with seeded(seed):
        network = Network(settings.width, settings.rounds, settings.flat)
    if before is not None:
        network.load_state_dict(under("policy", before))
    return network


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import PlacementPolicy

    return PlacementPolicy.load(path)


def evaluate(policy: Any, seeds: Any, *, nodes: int = 0) -> list[dict[str, Any]]:
    """Return costs over the bound, of the policy and of the greedy heuristic, see `evaluate.evaluate`.

    Args:
        policy: the learned one.
        seeds: of the batches, by index among those of the test split.
        nodes: about how many; 0 for batches of 8 to 16 as they are labelled.
    """
    from .evaluate import evaluate as judge

    return judge(policy, seeds, nodes=nodes)


def export(policy: Any, path: Path) -> tuple[Path, Path]:
    """Write a policy as ONNX."""
    from .onnx import export as write

    return write(policy, path)


def _seeds(settings: Settings, seed: int) -> dict[str, Any]:
    most = settings.passes * settings.instances
    training = f"split train, to {most}" + (", and from 1000000" if settings.rl_updates else "")
    return {"training": training, "validation": "split validation", "run": seed}


RECIPE = Recipe(
    name="placement",
    about="where the gangs of a batch go, one after the other",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    export=export,
    data="generated batches of gangs on 8 to 16 nodes, labelled by completions: of a heuristic, of the policy",
    seeds=_seeds,
)
