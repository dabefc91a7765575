"""How the throughput policy is trained, loaded and judged."""

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
    from .network import Scorer

_OWN = 10_000_000
"""Where the seeds begin, within the split for training, of instances that it plans itself: no label has them."""


def stages(settings: Settings, device: str, seed: int) -> list[Stage]:
    """Return imitation of labels, then of its own plans; either may be left out. It trains on the CPU, where plans are.

    Raises:
        InstanceError: if nothing would be trained.
    """
    if not settings.imitation_updates and not settings.rl_updates:
        raise InstanceError("rl_updates", "is 0, as is imitation_updates: nothing would be trained")
    made = []
    if settings.imitation_updates:
        every = 10 * settings.validate_every
        made.append(Stage("imitation", _imitation(settings, seed), settings.imitation_updates, every))
    if settings.rl_updates:
        made.append(
            Stage(
                "rl", _own_plans(settings, seed), settings.rl_updates, settings.validate_every,
                minutes=settings.rl_minutes,
            )
        )  # fmt: skip
    return made


def _imitation(settings: Settings, seed: int) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from ..gnn.imitation import Imitation
        from .examples import labelled, searched
        from .losses import plan_loss

        examples = labelled(settings) + list(searched(settings))
        network = _network(settings, seed, examples[0].encoding, before)

        def loss(chosen: Any, rng: Any) -> Any:
            from ..gnn import collate

            batch = collate([x.encoding for x in chosen])
            return plan_loss(
                network(batch), batch.first["groups"], chosen, rng,
                pairs=settings.pairs, steep=settings.steep, regret=settings.regret,
            )  # fmt: skip

        return Imitation(
            network, examples, loss, _validation(network, settings), minibatch=settings.minibatch,
            rate=settings.imitation_rate, updates=settings.imitation_updates, seed=seed,
        )  # fmt: skip

    return make


def _own_plans(settings: Settings, seed: int) -> Callable[[Tensors | None], Any]:
    def make(before: Tensors | None) -> Any:
        from .examples import drawn
        from .own_plans import OwnPlans

        pools = [
            list(
                drawn(
                    settings.families,
                    [size],
                    settings.rl_instances,
                    "train",
                    _OWN + i * settings.rl_instances,
                    messages=settings.rounds > 0,
                )
            )
            for i, size in enumerate(settings.rl_sizes)
        ]
        network = _network(settings, seed, pools[0][0].encoding, before)
        return OwnPlans(network, pools, settings, _validation(network, settings), seed + 1)

    return make


def _network(settings: Settings, seed: int, like: Any, before: Tensors | None) -> Scorer:

    from ..training.state import seeded, under
    from .network import Scorer

    with seeded(seed):
        network = Scorer(like, settings.width, settings.rounds, settings.heads)
    if before is not None:
        network.load_state_dict(under("policy", before))
    return network


def _validation(network: Any, settings: Settings) -> Any:
    from .examples import drawn
    from .validation import validation

    sizes = sorted({min(settings.rl_sizes), settings.label_size, max(settings.rl_sizes)})
    count = settings.validation_instances * len(settings.families)
    chosen = drawn(settings.families, sizes, count, "validation", messages=settings.rounds > 0)
    return validation(network, list(chosen), settings.gain)


def load(path: Path) -> Any:
    """Return the policy of a file of weights."""
    from .policy import ThroughputPolicy

    return ThroughputPolicy.load(path)


def evaluate(
    policy: Any, seeds: Any, *, size: int = 100, families: str = "layered,fork_join,series_parallel,pipeline",
    samples: int = 16,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the loads of the policy's plans and of the heuristics', see `gangplan.learned.throughput.evaluate`.

    Args:
        policy: the learned one.
        seeds: indices of test instances, family by family in turn.
        size: of an instance, ops at most.
        families: joined by commas.
        samples: of the plan that is the best of several.
    """
    from .evaluate import evaluate as judge

    return judge(policy, seeds, size=size, families=families.split(","), samples=samples)


def export(policy: Any, path: Path) -> tuple[Path]:
    """Write the network as ONNX."""
    from ..gnn.onnx import export as write

    return (write(policy.network, policy.network.graph.schema, path),)


RECIPE = Recipe(
    name="throughput",
    about="in which order the ops of a network come along a pipeline, which a recurrence then cuts into stages",
    config=Settings,
    stages=stages,
    load=load,
    evaluate=evaluate,
    export=export,
    data="CP-SAT's near-optimal plans of generated graphs of up to 100 ops, and its own plans of up to 400 ops",
    seeds=lambda settings, seed: {
        "labels": "train, from 0", "own plans": f"train, from {_OWN}", "validation": "validation, from 0", "run": seed,
    },
)  # fmt: skip
