"""How the graph policy may be configured, is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gangplan.instances.lazy import Later

from ..policy.recipe import Recipe
from ..policy.settings import RecipeSettings as Limited
from ..policy.settings import limited
from ..training.trainer import Step, staged

NAME = "gnn"


@dataclass(frozen=True, slots=True)
class GnnSettings(Limited):
    """Hyper-parameters of the graph policy and its training.

    Attributes:
        rule: that is corrected, see `gangplan.simulator.gangs.formula`.
        width, rounds: of the network.
        messages: whether it sends any.
        labels: decisions that the teacher labels.
        tries, futures, ahead: candidates of a decision that it tries, futures in which, and arrivals in each.
        exact: share of the labels whose futures CP-SAT solves, see `gangplan.learned.online.exact`.
        exact_updates: of imitation of these alone, which comes first.
        updates, rate: of imitation of all.
        minibatch: decisions.
        temperature, cross_entropy: of the cross-entropy to softmax(-regret / temperature), and its weight.
        iterated, depth, iterated_futures: decisions that are labelled again with the network in place of the rule, so
            many decisions deep, in so many futures.
        iterated_updates, iterated_rate: of imitation of these.
        ppo_updates, ppo_rate: of PPO; without `updates` it begins with the rule.
        ppo_episodes, ppo_jobs, ppo_passes: episodes that are played for an update, jobs that arrive in each, and passes
            over what was decided in them.
        ppo_draws, ppo_depth: candidates drawn of a decision, and decisions of the network itself after each.
        trace, cluster: jobs and cluster of one's own to learn from, see `gangplan.learned.online.own.OwnCluster`.
        start: weights to begin with.
        validate_every: updates from one validation to the next.
        validation_seeds: workloads of each ground.
    """

    rule: Literal["patient", "evolved"] = "patient"
    width: int = limited(32, least=1)
    rounds: int = limited(3, least=0)
    messages: bool = True
    labels: int = limited(24_000, least=1)
    tries: int = limited(16, least=2)
    futures: int = limited(24, least=1)
    ahead: int = limited(30, least=0)
    exact: float = limited(0.0, least=0, most=1)
    exact_updates: int = limited(0, least=0)
    updates: int = limited(1500, least=0)
    rate: float = limited(2e-3, above=0)
    minibatch: int = limited(128, least=1)
    temperature: float = limited(1.0, above=0)
    cross_entropy: float = limited(0.1, least=0)
    iterated: int = limited(5_000, least=1)
    depth: int = limited(30, least=1)
    iterated_futures: int = limited(14, least=1)
    iterated_updates: int = limited(500, least=0)
    iterated_rate: float = limited(4e-4, above=0)
    ppo_updates: int = limited(0, least=0)
    ppo_rate: float = limited(2e-4, above=0)
    ppo_episodes: int = limited(24, least=1)
    ppo_jobs: int = limited(150, least=1)
    ppo_passes: int = limited(2, least=1)
    ppo_depth: int = limited(20, least=0)
    ppo_draws: int = limited(4, least=1)
    trace: str = ""
    cluster: str = ""
    start: str = ""
    validate_every: int = limited(200, least=1)
    validation_seeds: int = limited(6, least=1)


def verdict(policy: Any, settings: GnnSettings) -> list[dict[str, Any]]:
    """Return rows that say whether to use a policy on one's own cluster; none if it learned from no trace."""
    from .own import OwnCluster

    return OwnCluster(settings.trace, settings.cluster).verdict(policy) if settings.trace else []


RECIPE = Recipe(
    name=NAME,
    about="which job starts next on a cluster where close GPUs are faster, on which GPUs, or to wait",
    config=GnnSettings,
    stages=staged(
        f"{__package__}.learners:Training",
        lambda of: [
            Step("exact", of.exact_updates, of.validate_every),
            Step("rollouts", of.updates, of.validate_every),
            Step("iterated", of.iterated_updates, of.validate_every),
            Step("rl", of.ppo_updates, 10),
        ],
    ),
    load=Later(f"{__package__}.policy:GnnPolicy.load"),
    judge=Later("gangplan.systems.topdrl.ground:judge_online"),
    verdict=verdict,
    torch=False,
    data="jobs like TopDRL's, Philly's, and of lognormal lengths, on loaded clusters of 32 to 2,048 GPUs",
)
