"""What a configuration of the policy may say."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances import InstanceError

FAMILIES = ("layered", "fork_join", "series_parallel")
"""What it is trained on; ``pipeline`` is left to be judged on."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of the throughput policy and its training.

    Attributes:
        labels: folder of labels by `gangplan learn labels`; what is missing there is made first.
        label_shards, label_shard, label_size, label_seconds: how many shards of so many instances of so many ops,
            and the time limit of each instance.
        searched, search_sizes, search_samples: instances of each size, in ops, that are planned from so many random
            scores for more examples.
        near: whether all near-optimal plans of a label count, each by its regret, or the best one only.
        families: trained on.
        width, rounds, heads: of the network; without rounds of messages it is an MLP.
        gain: by how much scores are stretched once the network is trained, which draws them to the middle of plans.
        imitation_updates, imitation_rate, minibatch: of learning from the labels; 0 updates leave it out.
        pairs: of groups in different stages, drawn of each plan.
        steep: of the ranking loss: at a distance of 1 / steep in the order, two groups are told apart.
        regret: what a plan may be worse, as a share, before it hardly counts.
        rl_updates, rl_rate, rl_minibatch: of learning from its own plans; 0 updates leave it out.
        rl_sizes: of the graphs it plans, ops.
        rl_instances: of each size.
        samples: plans drawn of an instance and head.
        noise: standard deviation of a drawn score, shares of the whole order.
        validate_every: updates from one validation to the next; of imitation, ten times as many.
        validation_instances: a size and family.
        rl_minutes: of wall-clock time at most.
    """

    labels: str = "build/labels/throughput"
    label_shards: int = 16
    label_shard: int = 12
    label_size: int = 100
    label_seconds: float = 2.0
    searched: int = 0
    search_sizes: tuple[int, ...] = (60, 100, 100, 200, 300)
    search_samples: int = 120
    near: bool = True
    families: tuple[str, ...] = FAMILIES
    width: int = 32
    rounds: int = 0
    heads: int = 8
    gain: float = 2.0
    imitation_updates: int = 400
    imitation_rate: float = 2e-3
    minibatch: int = 16
    pairs: int = 600
    steep: float = 12.0
    regret: float = 0.02
    rl_updates: int = 400
    rl_rate: float = 1e-3
    rl_minibatch: int = 12
    rl_sizes: tuple[int, ...] = (60, 100, 200, 400)
    rl_instances: int = 120
    samples: int = 8
    noise: float = 0.5
    validate_every: int = 25
    validation_instances: int = 5
    rl_minutes: float = 12.0

    def __post_init__(self) -> None:
        counts = ("label_shards", "label_shard", "width", "heads", "minibatch", "pairs", "rl_minibatch", "rl_instances")
        for name in (*counts, "samples", "search_samples", "validate_every", "validation_instances"):
            if getattr(self, name) < 1:
                raise InstanceError(name, f"{getattr(self, name)!r} is not positive")
        for name in ("rounds", "searched", "imitation_updates", "rl_updates"):
            if getattr(self, name) < 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is negative")
        for name in ("label_seconds", "imitation_rate", "rl_rate", "steep", "regret", "gain", "noise", "rl_minutes"):
            if getattr(self, name) <= 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is not positive")
        for i, size in enumerate((self.label_size, *self.rl_sizes, *self.search_sizes)):
            if size < 4:
                raise InstanceError("label_size" if not i else "sizes", f"{size!r} is less than 4")
        if self.samples % 2:
            raise InstanceError("samples", f"{self.samples!r} is odd: they come in pairs")
        if not self.families:
            raise InstanceError("families", "names none")
        if not self.rl_sizes:
            raise InstanceError("rl_sizes", "names none")
