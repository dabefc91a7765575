"""What a data set of labels is made with."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.errors import unknown
from gangplan.instances.generators.families import FAMILIES, seed_of

PROBLEMS = ("throughput",)
"""The problems that have labels."""
LEVELS = (0.0, 0.01, 0.02, 0.05, 0.1)
"""Tolerances, as shares of the best value of a state; the last one is what `near` means."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What makes a data set what it is.

    Attributes:
        problem: one of `PROBLEMS`.
        families: of instances, taken in turn; none means all of the problem.
        size: see `gangplan.instances.generators.families.make`.
        split: train, validation or test.
        states: how many states on the way are labelled, besides the empty one.
        levels: see `LEVELS`.
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
        if self.problem not in PROBLEMS:
            raise InstanceError("problem", unknown(self.problem, PROBLEMS))
        known = FAMILIES[self.problem]
        object.__setattr__(self, "families", tuple(self.families) or known)
        for i, family in enumerate(self.families):
            if family not in known:
                raise InstanceError(f"families[{i}]", unknown(family, known))
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


def up_to(near: float) -> tuple[float, ...]:
    """Return the levels of `LEVELS` below `near`, then `near`.

    Raises:
        InstanceError: if it is no number from 0 on.
    """
    require_number(near, "near")
    return (*(level for level in LEVELS if level < near), near)
