"""Trainers: what the stages of one training share, made when the first of them begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from gangplan.instances.errors import InstanceError
from gangplan.instances.lazy import Later

from ..policy.weights import Tensors
from .checkpoint import under
from .loop import TrainingStage

if TYPE_CHECKING:
    from torch import nn

    from .learner import Learner

S = TypeVar("S", bound=Any)
N = TypeVar("N", bound=Any)


class Trainer(Generic[S]):
    """What the stages of one training share.

    Who derives from this has the networks, and for each stage a method of its name, from the network to its learner;
    after a hyphen in the name is a number, which the method gets too.

    Attributes:
        make, values: from the settings to a network, and to that of values, unless `network` or `critic` is another.

    Args:
        settings: of the policy.
        seed: of everything drawn.
    """

    make: ClassVar[Any]
    values: ClassVar[Any]

    def __init__(self, settings: S, seed: int) -> None:
        self.settings, self.seed = settings, seed

    def network(self) -> nn.Module:
        """Return the network with any weights."""
        return type(self).make(self.settings)

    def critic(self) -> nn.Module:
        """Return the network of values with any weights."""
        return type(self).values(self.settings)

    def validate(self, network: Any) -> dict[str, float]:
        """Return figures on validation seeds; ``score`` is among them, and smaller is better."""
        raise NotImplementedError

    def learner(self, stage: str, before: Tensors | None) -> Learner:
        """Return the learner of a stage, given what the stage before ended with, None if it is the first."""
        name, *number = stage.split("-")
        found: Learner = getattr(self, name)(start(self.network, self.seed, before), *map(int, number))
        return found


def start(make: Callable[[], N], seed: int, before: Tensors | None) -> N:
    """Return a network with first weights drawn from a seed, or with those that the stage before ended with."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make()
    if before is not None:
        network.load_state_dict(under("policy", before))
    return network


def staged(
    trainer: str, steps: Callable[[S], Mapping[str, tuple[int, int]]]
) -> Callable[[S, int], list[TrainingStage]]:
    """Return what makes the stages of a training from settings and seed.

    Args:
        trainer: a class derived from `Trainer`, ``module:Class``; it is imported when training begins.
        steps: from settings to the stages, by name: their updates, and those from one validation to the next; stages
            without updates are left out.

    Raises:
        InstanceError: from what is returned, if no stage has updates.
    """

    def stages(settings: S, seed: int) -> list[TrainingStage]:
        made, declared = cache(lambda: Later(trainer)(settings, seed)), steps(settings)

        def learner(name: str) -> Callable[[Tensors | None], Learner]:
            return lambda before: made().learner(name, before)

        if not any(updates for updates, _ in declared.values()):
            raise InstanceError("updates", f"of {', '.join(declared)} are 0: nothing is trained")
        return [
            TrainingStage(x, learner(x), updates, max(often, 1)) for x, (updates, often) in declared.items() if updates
        ]

    return stages
