"""What a configuration of the policy may say."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances import InstanceError


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of the schedule policy and its training.

    Attributes:
        width, rounds: of the messages; 0 rounds leave them out.
        instances: of the family moldable, of `least` to `most` jobs, in imitation.
        share: of the states of each that are labelled.
        exact: instances solved exactly, whose best schedules are imitated too; `solve_seconds` for each at most.
        all_actions: whether what every candidate is worth counts; else only which is the best, as one label.
        imitation_updates, imitation_rate, minibatch: of imitation; 0 updates leave it out.
        rl_updates, rl_rate: of the policy gradient, in all its rounds; 0 updates leave it out.
        rl_rounds, rl_instances, rl_most, rl_share: rounds; in each the policy walks through so many other instances, of
            up to so many jobs, and this share of the states on its way is labelled by its own rollouts.
        validate_every: updates from one validation to the next.
        validation: instances that it is made on.
    """

    width: int = 32
    rounds: int = 2
    instances: int = 3000
    least: int = 8
    most: int = 30
    share: float = 0.3
    exact: int = 150
    solve_seconds: float = 2.0
    all_actions: bool = True
    imitation_updates: int = 1800
    imitation_rate: float = 3e-3
    minibatch: int = 24
    rl_updates: int = 800
    rl_rate: float = 1e-3
    rl_rounds: int = 1
    rl_instances: int = 1000
    rl_most: int = 60
    rl_share: float = 0.15
    validate_every: int = 250
    validation: int = 60

    def __post_init__(self) -> None:
        for name in ("width", "minibatch", "rl_rounds", "rl_instances", "validate_every", "validation", "instances"):
            if getattr(self, name) < 1:
                raise InstanceError(name, f"{getattr(self, name)!r} is not positive")
        for name in ("rounds", "exact", "imitation_updates", "rl_updates"):
            if getattr(self, name) < 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is negative")
        for name in ("imitation_rate", "rl_rate", "solve_seconds"):
            if getattr(self, name) <= 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is not positive")
        if not 4 <= self.least <= self.most or self.rl_most < self.least:
            raise InstanceError("least", f"{self.least!r} is not from 4 to most, {self.most}, and rl_most")
        if not (0 < self.share <= 1 and 0 < self.rl_share <= 1):
            raise InstanceError("share", f"{self.share!r}, or rl_share, {self.rl_share!r}, is not over 0 and up to 1")
        if not self.imitation_updates and not self.rl_updates:
            raise InstanceError("rl_updates", "is 0, as is imitation_updates: nothing would be trained")
