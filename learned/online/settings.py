"""How the graph policy may be configured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gangplan.instances.arrays import Checked, limited

NAME = "gnn"


@dataclass(frozen=True, slots=True)
class GnnSettings(Checked):
    """Hyper-parameters of the graph policy and its training.

    Attributes:
        rule: that is corrected, see `gangplan.simulator.gangs.formula`.
        width, rounds: of the network.
        messages: whether it sends any.
        labels: decisions that the teacher labels.
        tries, futures, ahead: candidates of a decision that it tries, futures in which, and arrivals in each.
        exact: share of the labels whose futures CP-SAT solves, see `gangplan.learned.training.online.exact`.
        exact_updates: of imitation of these alone, which comes first.
        updates, rate: of imitation of all.
        minibatch: decisions.
        sharp: times which scores count in the softmax from which candidates are drawn.
        noise: regret that is not told from that of the rule's candidate, in mean lengths of a job.
        anchor: weight of how far the softmax is from that of the rule alone.
        rl_updates, rl_rate: of evolution strategies; without `updates` they begin with the rule.
        scale: share of the corrections that are left before.
        rl_pairs, rl_jobs: pairs of opposite networks of an update, and jobs that arrive in each of their runs.
        rl_spread: how far apart they are, in deviations of the weights.
        largest: GPUs of the largest ground that is learned from and chosen by, 0 for any.
        trace, cluster: jobs and cluster of one's own to learn from: `gangplan.learned.training.online.own.OwnCluster`.
        start: weights to begin with.
        validate_every: updates from one validation to the next.
        validation_seeds: workloads of each ground.
    """

    RETIRED: ClassVar[frozenset[str]] = frozenset(
        ["temperature", "cross_entropy", "iterated", "depth", "iterated_futures", "iterated_updates", "iterated_rate"]
        + [f"ppo_{x}" for x in ("updates", "rate", "episodes", "jobs", "passes", "depth", "draws")]
    )

    rule: Literal["patient", "evolved"] = "patient"
    width: int = limited(32, positive=True)
    rounds: int = 3
    messages: bool = True
    labels: int = limited(24_000, positive=True)
    tries: int = limited(16, least=2)
    futures: int = limited(24, positive=True)
    ahead: int = 30
    exact: float = limited(0.0, most=1)
    exact_updates: int = 0
    updates: int = 1500
    rate: float = limited(2e-3, positive=True)
    minibatch: int = limited(128, positive=True)
    sharp: float = limited(4.0, positive=True)
    noise: float = 0.05
    anchor: float = 0.1
    rl_updates: int = 0
    rl_rate: float = limited(0.6, positive=True)
    scale: float = limited(1.0, most=1)
    rl_pairs: int = limited(6, positive=True)
    rl_jobs: int = limited(1200, positive=True)
    rl_spread: float = limited(2.0, positive=True)
    largest: int = limited(0, least=0)
    trace: str = limited("", empty=True)
    cluster: str = limited("", empty=True)
    start: str = limited("", empty=True)
    validate_every: int = limited(200, positive=True)
    validation_seeds: int = limited(6, positive=True)
