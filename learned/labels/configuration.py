"""What a data set of labels is made with."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.generators.families import FAMILIES, seed_of

from .values import LEVELS


@dataclass(frozen=True, slots=True)
class Configuration:
    """What makes a data set what it is.

    Attributes:
        problem: throughput, step, placement or schedule.
        families: of instances, taken in turn.
        size: see `make`.
        split: train, validation or test.
        states: how many states on the way are labelled, besides the empty one.
        levels: see `values.LEVELS`.
        time_limit: seconds an instance.
        shard: instances in a file.
    """

    problem: str
    families: tuple[str, ...] = ()
    size: int = 50
    split: str = "train"
    states: int = 8
    levels: tuple[float, ...] = LEVELS
    time_limit: float = 60.0
    shard: int = 16

    def __post_init__(self) -> None:
        if self.problem not in FAMILIES:
            raise InstanceError("problem", f"{self.problem!r} is not one of {', '.join(FAMILIES)}")
        object.__setattr__(self, "families", tuple(self.families) or FAMILIES[self.problem])
        for i, family in enumerate(self.families):
            if family not in FAMILIES[self.problem]:
                words = f"{family!r} is not one of {', '.join(FAMILIES[self.problem])}"
                raise InstanceError(f"families[{i}]", words)
        object.__setattr__(self, "levels", tuple(map(float, self.levels)))
        for i, level in enumerate(self.levels):
            require_number(level, f"levels[{i}]")
        if not self.levels or self.levels[0] or list(self.levels) != sorted(set(self.levels)):
            raise InstanceError("levels", f"{self.levels!r} do not ascend from 0")
        require_number(self.size, "size", whole=True)
        if self.size < 4:
            raise InstanceError("size", f"{self.size!r} is less than 4")
        seed_of(self.split, 0)
        require_number(self.states, "states", whole=True)
        require_number(self.time_limit, "time_limit", positive=True)
        require_number(self.shard, "shard", positive=True, whole=True)
