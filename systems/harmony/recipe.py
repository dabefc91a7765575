"""How Harmony's policy may be configured, is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gangplan.instances import InstanceError
from gangplan.instances.arrays import check_fields, limited, require_choice
from gangplan.instances.lazy import Later
from gangplan.instances.published import DATA
from gangplan.learned.training.recipe import Recipe
from gangplan.learned.training.trainer import staged

from ..interference.ground import Interference

if TYPE_CHECKING:
    from ..interference.baselines import ScoreRule
    from ..interference.case import InterferenceCase

NAME = "harmony"


@dataclass(frozen=True, slots=True)
class HarmonySettings:
    """Hyper-parameters of the policy and its training.

    Attributes:
        architecture: ``feedforward`` (2019), or ``attention`` (2023).
        form: ``published``: jobs are seen by arrival, their lengths are not, and an interval ends when nothing fits; or
            ``tuned``, with what tuned rules are given too: the shortest first, with its length by the profile and its
            age, and the interval may end while something fits.
        case: what it is trained on, of `CASES` or `DATA_CASES`.
        data: folder of the latter.
        types, servers: of the case.
        jobs: of an episode.
        slots, running: waiting and running jobs in sight.
        width, heads: of layers, and of attention.
        reward_model: one of `gangplan.learned.training.interference.models.MODELS`; or ``off``: the true cluster pays,
            in no more intervals than made the log.
        samples, noise: of the log, and of the speeds in it.
        explore: probability of an exploratory action, packing or balancing load at random.
        replay, replays: updates that are kept, and how many of them each update learns from again; 0 leaves it out.
        imitation_updates, imitation_rate, minibatch, labels: of imitation of `teacher`, with which training begins; 0
            updates leave it out.
        teacher: score of the rule; it is that of the form.
        rl_updates, rl_rate, critic_rate, gamma, lam, entropy: of actor-critic; the discount is an interval's.
        lanes, warm: episodes of an update, and updates that train the critic only.
        validate_every, validation_seeds: updates from one validation to the next, and cases of each.
    """

    architecture: Literal["feedforward", "attention"] = "attention"
    form: Literal["published", "tuned"] = "published"
    case: str = "poisson"
    data: str = limited("", empty=True)
    types: int = limited(8, positive=True)
    servers: int = limited(6, positive=True)
    jobs: int = limited(50, positive=True)
    slots: int = limited(8, positive=True, most=10)
    running: int = limited(12, positive=True)
    width: int = limited(48, positive=True)
    heads: int = limited(4, positive=True)
    reward_model: str = "sequence"
    samples: int = limited(2000, least=100)
    noise: float = 0.02
    explore: float = limited(0.05, below=1)
    replay: int = 8
    replays: int = 1
    imitation_updates: int = 600
    imitation_rate: float = limited(2e-3, positive=True)
    minibatch: int = limited(256, positive=True)
    labels: int = limited(20000, positive=True)
    teacher: str = "tetris"
    rl_updates: int = 100
    rl_rate: float = limited(3e-5, positive=True)
    critic_rate: float = limited(3e-3, positive=True)
    gamma: float = limited(0.9, above=0, below=1)
    lam: float = limited(0.9, above=0, most=1)
    entropy: float = 3e-4
    lanes: int = limited(24, positive=True)
    warm: int = 6
    validate_every: int = limited(10, positive=True)
    validation_seeds: int = limited(8, positive=True)

    def __post_init__(self) -> None:
        from gangplan.learned.training.interference.models import MODELS

        from ..interference.baselines import SCORES
        from ..interference.cases import CASES, DATA_CASES

        check_fields(self)
        known = {"case": [*CASES, *DATA_CASES], "reward_model": ["off", *MODELS], "teacher": list(SCORES)}
        for name, names in known.items():
            require_choice(getattr(self, name), name, names)
        if self.case in DATA_CASES and not self.data:
            raise InstanceError("data", f"is empty, and {self.case} needs it")
        if self.architecture == "attention" and self.width % self.heads:
            raise InstanceError("width", f"{self.width} is not divisible by {self.heads} heads")

    @property
    def waits(self) -> bool:
        """Whether an interval may end while something fits."""
        return self.form == "tuned"

    def make(self, seed: int, jobs: int | None = None) -> InterferenceCase:
        """Return the case of a seed, with the true cluster."""
        from ..interference.cases import maker

        words: dict[str, Any] = {} if jobs is None else {"jobs": jobs}
        return maker(self.case, self.data, **words)(seed)

    def rule(self, score: str) -> ScoreRule:
        """Return a rule in the same form as the policy."""
        from ..interference.baselines import ScoreRule, tuned

        return tuned(score, near=True) if self.waits else ScoreRule(score)


def judge(policy: Any) -> tuple[list[Interference], list[str]]:
    """Compare a policy with the rules and the oracles in the true cluster of the case that it was trained on."""
    from ..interference.baselines import baselines

    return [Interference(policy.settings.case, policy.settings.data or DATA)], list(baselines())


RECIPE = Recipe(
    name=NAME,
    about="which task of which waiting job goes to which server, where jobs slow one another down",
    config=HarmonySettings,
    stages=staged(
        f"{__package__}.learners:HarmonyTraining",
        lambda of: {
            "imitation": (of.imitation_updates, of.imitation_updates // 4),
            "rl": (of.rl_updates, of.validate_every),
        },
    ),
    load=Later(f"{__package__}.policy:HarmonyPolicy.load"),
    judge=judge,
    data="drawn cases of gangplan.systems.interference.cases, under speeds predicted by a model fitted to a log",
)
