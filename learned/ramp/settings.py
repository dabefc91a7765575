"""What a configuration of the policy may say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gangplan.instances import InstanceError
from gangplan.simulator.ramp.step import Units

Variant = Literal["gnn", "totals"]
"""``totals`` sees the cluster's and the job's totals only, no block and no op: an MLP, to compare with."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of the PAC-ML policy and its training.

    Attributes:
        profiles: folder of the published models' PipeDream profiles.
        units: in which the network is trained and judged.
        variant: what the network sees.
        width: of its hidden layers.
        blocks: whether it chooses the block; else the first free one of the degree that it chooses.
        imitation_updates, imitation_rate, temperature, minibatch: of imitation; 0 updates leave it out.
        labels: decisions that the teacher labels by its table, in each published setting.
        searched: decisions that it labels by rollouts.
        planned: distributions of which it plans futures instead of playing on,
        planned_labels: decisions of each of them that it labels so.
        corrected: decisions that it labels besides, in states that the network comes to.
        corrected_updates, corrected_rate: of imitation with them; 0 updates leave it out.
        rounds: of policy iteration that make the teacher's table, and episodes in each.
        rl_updates, rl_rate, critic_rate, gamma, lam, entropy, passes: of PPO; 0 updates leave it out.
        lanes, steps: episodes side by side, and decisions in each, from one update to the next.
        warm: updates that train the critic only.
        share_various: share of the lanes in which other networks, loads and users arrive, on clusters of 16 to 64.
        validate_every: updates of PPO from one validation to the next; of imitation, ten times as many.
        validation_seeds: cases of each published setting.
        rl_minutes: of wall-clock time for PPO at most.
        processes: that label at once.
    """

    profiles: str = "../shared/data/pipedream"
    units: tuple[Units, ...] = ("physical",)
    variant: Variant = "gnn"
    width: int = 96
    blocks: bool = True
    imitation_updates: int = 4000
    imitation_rate: float = 2e-3
    temperature: float = 0.02
    minibatch: int = 512
    labels: int = 6000
    searched: int = 1500
    planned: tuple[str, ...] = ()
    planned_labels: int = 5000
    corrected: int = 800
    corrected_updates: int = 2000
    corrected_rate: float = 1e-3
    rounds: int = 7
    rl_updates: int = 200
    rl_rate: float = 3e-4
    critic_rate: float = 2e-3
    gamma: float = 0.98
    lam: float = 0.95
    entropy: float = 1e-3
    passes: int = 2
    lanes: int = 128
    steps: int = 64
    warm: int = 20
    share_various: float = 0.25
    validate_every: int = 25
    validation_seeds: int = 4
    rl_minutes: float = 5.0
    processes: int = 2

    def __post_init__(self) -> None:
        for name in (
            "width",
            "minibatch",
            "labels",
            "rounds",
            "lanes",
            "steps",
            "passes",
            "processes",
            "validate_every",
            "validation_seeds",
        ):
            if getattr(self, name) < 1:
                raise InstanceError(name, f"{getattr(self, name)!r} is not positive")
        for name in (
            *("imitation_updates", "rl_updates", "warm", "searched", "entropy"),
            *("planned_labels", "corrected", "corrected_updates"),
        ):
            if getattr(self, name) < 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is negative")
        for name in (
            "imitation_rate",
            "corrected_rate",
            "rl_rate",
            "critic_rate",
            "temperature",
            "gamma",
            "lam",
            "rl_minutes",
        ):
            if getattr(self, name) <= 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is not positive")
        various = round(self.lanes * self.share_various)
        for name, wrong, why in (
            ("planned", not set(self.planned) <= set("ABCD"), "names others than A, B, C, D"),
            ("steps", self.steps < 2, "is not 2 or more: what comes of the last step is not known"),
            ("gamma", self.gamma >= 1, "is not below 1"),
            ("lam", self.lam > 1, "is over 1"),
            ("units", not self.units or len(set(self.units)) < len(self.units), "names none, or one twice"),
            ("share_various", not 0 <= self.share_various < 1, "is not from 0 to below 1"),
            ("share_various", various == self.lanes, f"of {self.lanes} lanes leaves none"),
        ):
            if wrong:
                raise InstanceError(name, f"{getattr(self, name)!r} {why}")
