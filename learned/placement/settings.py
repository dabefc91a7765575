"""What a configuration of the placement policy may say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gangplan.instances import InstanceError

Labels = Literal["all", "one"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of the placement policy and its training.

    Attributes:
        width, rounds: of the messages; 0 rounds are an MLP.
        flat: leave out the racks.
        labels: learn from what all places of a decision are worth, or from the best one alone.
        passes: how often decisions are labelled: first by completions of the greedy heuristic, then by those of the
            policy that was learned from the labels so far, in states that it gets itself into; 0 for the policy
            gradient alone.
        instances: batches a pass, of 8 to 16 nodes.
        decisions: labelled in each.
        completions: drawn for each place; the best counts.
        updates, rate, minibatch, temperature: of imitation, in each pass.
        rl_updates, rl_rate, rl_batch, rl_samples, rl_nodes: of the policy gradient: batches an update, samples of
            each, and nodes of the largest.
        noise: temperature of the scores when plans are sampled.
        order_noise: standard deviation of the jobs' turns then.
        validation: batches.
        validate_every: updates.
    """

    width: int = 32
    rounds: int = 2
    flat: bool = False
    labels: Labels = "all"
    passes: int = 2
    instances: int = 700
    decisions: int = 4
    completions: int = 7
    updates: int = 1000
    rate: float = 2e-3
    minibatch: int = 24
    temperature: float = 0.03
    rl_updates: int = 0
    rl_rate: float = 1e-4
    rl_batch: int = 8
    rl_samples: int = 8
    rl_nodes: int = 64
    noise: float = 0.5
    order_noise: float = 0.6
    validation: int = 48
    validate_every: int = 250

    def __post_init__(self) -> None:
        for name in (
            "width", "instances", "decisions", "completions", "updates", "minibatch", "rl_batch",
            "validation", "validate_every",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise InstanceError(name, f"{getattr(self, name)!r} is not positive")
        for name in ("passes", "rounds", "rl_updates"):
            if getattr(self, name) < 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is negative")
        for name in ("rate", "temperature", "rl_rate", "noise", "order_noise"):
            if not getattr(self, name) > 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is not positive")
        if not self.passes and not self.rl_updates:
            raise InstanceError("passes", "there is nothing to learn from without passes and rl_updates")
        if self.rl_samples < 2:
            raise InstanceError("rl_samples", f"{self.rl_samples!r} is less than 2: nothing to compare with")
        if self.rl_nodes < 16:
            raise InstanceError("rl_nodes", f"{self.rl_nodes!r} is less than 16")
