"""What a configuration of the policy may say."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances import InstanceError

from ..policy.settings import Settings as Limited
from ..policy.settings import limited


@dataclass(frozen=True, slots=True)
class Settings(Limited):
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

    width: int = limited(32, least=1)
    rounds: int = limited(2, least=0)
    instances: int = limited(3000, least=1)
    least: int = limited(8, least=4)
    most: int = 30
    share: float = limited(0.3, above=0, most=1)
    exact: int = limited(150, least=0)
    solve_seconds: float = limited(2.0, above=0)
    all_actions: bool = True
    imitation_updates: int = limited(1800, least=0)
    imitation_rate: float = limited(3e-3, above=0)
    minibatch: int = limited(24, least=1)
    rl_updates: int = limited(800, least=0)
    rl_rate: float = limited(1e-3, above=0)
    rl_rounds: int = limited(1, least=1)
    rl_instances: int = limited(1000, least=1)
    rl_most: int = 60
    rl_share: float = limited(0.15, above=0, most=1)
    validate_every: int = limited(250, least=1)
    validation: int = limited(60, least=1)

    def __post_init__(self) -> None:
        Limited.__post_init__(self)
        if not self.least <= self.most or self.rl_most < self.least:
            raise InstanceError("least", f"{self.least!r} is over most, {self.most}, or rl_most, {self.rl_most}")
        if not self.imitation_updates and not self.rl_updates:
            raise InstanceError("rl_updates", "is 0, as is imitation_updates: nothing would be trained")
