"""How MARL's policy may be configured, is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gangplan.instances import InstanceError
from gangplan.instances.arrays import check_fields, limited, require_choice
from gangplan.instances.lazy import Later
from gangplan.learned.training.recipe import Recipe
from gangplan.learned.training.trainer import staged

from ..interference.ground import Agents

if TYPE_CHECKING:
    from ..interference.case import InterferenceCase

NAME = "marl"


@dataclass(frozen=True, slots=True)
class MarlSettings:
    """Hyper-parameters of the policy and its training.

    Attributes:
        cases: what it is trained on, of `CASES` with racks.
        servers, jobs: of an episode.
        types: of jobs.
        width: of layers.
        reward_model: one of `gangplan.learned.training.interference.models.MODELS`.
        samples, noise: of the log of each case, and of the speeds in it.
        rounds, imitation_updates, imitation_rate, minibatch, labels: of imitation of a market, see `Teacher`; steps in
            a minibatch, and intervals of a cluster with labels. In the first round the market decides, then also the
            network so far, and the market says what is right (DAgger, Ross et al., AISTATS 2011). No rounds: none.
        rl_updates, rl_rate, critic_rate, gamma, lam, entropy, passes: of PPO; the discount is an interval's.
        team: share of an agent's advantage that is the mean of all agents'.
        lanes, warm: episodes of an update, and updates that train the critic only.
        validate_every, validation_seeds: updates from one validation to the next, and workloads of each case.
    """

    RETIRED: ClassVar[frozenset[str]] = frozenset({"graph"})

    cases: tuple[str, ...] = ("leaf-spine", "fat-tree")
    servers: int = limited(32, positive=True)
    jobs: int = limited(150, positive=True)
    types: int = limited(8, positive=True)
    width: int = limited(32, positive=True)
    reward_model: str = "pressure"
    samples: int = limited(4000, least=100)
    noise: float = 0.02
    rounds: int = 2
    imitation_updates: int = limited(600, positive=True)
    imitation_rate: float = limited(2e-3, positive=True)
    minibatch: int = limited(32, positive=True)
    labels: int = limited(120, positive=True)
    rl_updates: int = 100
    rl_rate: float = limited(2e-4, positive=True)
    critic_rate: float = limited(2e-3, positive=True)
    gamma: float = limited(0.9, above=0, below=1)
    lam: float = limited(0.9, above=0, most=1)
    entropy: float = 3e-4
    passes: int = limited(2, positive=True)
    team: float = limited(0.5, most=1)
    lanes: int = limited(8, positive=True)
    warm: int = 5
    validate_every: int = limited(10, positive=True)
    validation_seeds: int = limited(2, positive=True)

    def __post_init__(self) -> None:
        from gangplan.learned.training.interference.models import MODELS

        from ..interference.cases import CENTRES

        check_fields(self)
        require_choice(self.reward_model, "reward_model", MODELS)
        for name in self.cases:
            require_choice(name, "cases", CENTRES)
        if not self.cases:
            raise InstanceError("cases", "is empty")

    def make(self, case: str, seed: int, jobs: int | None = None) -> InterferenceCase:
        """Return the case of a seed, with the true cluster."""
        from ..interference.cases import CENTRES

        return CENTRES[case](seed, jobs=jobs or self.jobs, servers=self.servers)


def judge(policy: Any) -> tuple[list[Agents], tuple[str, ...]]:
    """Compare a policy with blind agents and single schedulers in the first case of its training, with 64 servers."""
    return [Agents(policy.settings.cases[0])], (
        "lif",
        "tetris",
        "lb",
        "agents-lif",
        "agents-random",
        "market",
        "lif-near",
    )


RECIPE = Recipe(
    name=NAME,
    about="where agents that own racks place tasks, and to whom they pass jobs on",
    config=MarlSettings,
    stages=staged(
        f"{__package__}.learners:MarlTraining",
        lambda of: {
            **{f"imitation-{i}": (of.imitation_updates, of.imitation_updates // 4) for i in range(of.rounds)},
            "rl": (of.rl_updates, of.validate_every),
        },
    ),
    load=Later(f"{__package__}.policy:MarlPolicy.load"),
    judge=judge,
    data="small data centres of gangplan.systems.interference, under speeds predicted by models fitted to logs",
)
