"""How TopDRL's policy may be configured, is trained, loaded and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gangplan.instances import InstanceError
from gangplan.instances.arrays import limited
from gangplan.instances.lazy import Later
from gangplan.instances.placement import Fleet
from gangplan.learned.policy.settings import PpoSettings
from gangplan.learned.training.recipe import Recipe
from gangplan.learned.training.trainer import staged

from ..ground import Topdrl

if TYPE_CHECKING:
    from gangplan.simulator.gangs.mixes import Mix

NAME = "topdrl"


@dataclass(frozen=True, slots=True)
class TopdrlSettings(PpoSettings):
    """Hyper-parameters of the policy and its training; of PPO, see `PpoSettings`.

    Attributes:
        decides: ``job``, TopDRL: the network picks the job, `allocator` its GPUs; or ``gpus``, Proximity-DRL: the
            queue goes first come first served, and the network picks the GPUs of its head one by one.
        size: of the workloads, one of the published.
        slots, backlog: jobs of the queue in sight, and how many more are counted.
        cluster: racks, nodes of a rack, GPUs of a node.
        allocator: one of `gangplan.simulator.gangs.allocate.ALLOCATORS`.
        rows, step, widest: of the images: rows, seconds of a row, GPUs of the largest job.
        channels, width: of convolutions and of layers.
        reward, hold, pay: see `gangplan.systems.topdrl.batch.Batch`, and what a reward of 1 counts.
        imitation_updates, imitation_rate, minibatch: of imitation of least work first, with which training begins; 0
            updates leave it out.
        labels, strays: decisions that the teacher labels, and the share of them after which another one is made.
        validate_every, validation_seeds: updates from one validation to the next, and workloads of each.
    """

    RETIRED: ClassVar[frozenset[str]] = frozenset({"branches", "head"})

    decides: Literal["job", "gpus"] = "job"
    size: Literal["small", "large"] = "small"
    slots: int = limited(20, positive=True)
    backlog: int = limited(5, positive=True)
    cluster: tuple[int, ...] = (2, 4, 4)
    allocator: str = "closest"
    rows: int = limited(30, least=10)
    step: float = limited(1.0, positive=True)
    widest: int = limited(8, positive=True)
    channels: int = limited(16, positive=True)
    width: int = limited(128, positive=True)
    reward: Literal["throughput", "jct"] = "throughput"
    hold: float = 1.0
    pay: float = limited(0.01, positive=True)
    imitation_updates: int = 0
    imitation_rate: float = limited(1e-3, positive=True)
    minibatch: int = limited(256, positive=True)
    labels: int = limited(20000, positive=True)
    strays: float = limited(0.1, most=1)
    validate_every: int = limited(5, positive=True)
    validation_seeds: int = limited(16, positive=True)

    def __post_init__(self) -> None:
        PpoSettings.__post_init__(self)
        if len(self.cluster) != 3 or min(self.cluster) < 1:
            raise InstanceError("cluster", f"{self.cluster!r} is not racks, nodes and GPUs")
        if self.decides == "gpus" and self.imitation_updates:
            raise InstanceError("imitation_updates", "is not 0, and nobody teaches to pick GPUs")
        if self.decides == "gpus" and self.slots > 1:
            raise InstanceError("slots", f"{self.slots} are not 1: the head of the queue is all that is decided about")

    @property
    def fleet(self) -> Fleet:
        """The cluster that it is trained on."""
        return Fleet.regular(*self.cluster)

    @property
    def gpus(self) -> int:
        """How many there are."""
        racks, nodes, gpus = self.cluster
        return racks * nodes * gpus

    @property
    def mix(self) -> Mix:
        """The workloads that it is trained on."""
        from gangplan.simulator.gangs.mixes import LARGE, SMALL

        return LARGE if self.size == "large" else SMALL

    @property
    def actions(self) -> int:
        """How many the network scores: slots and to wait, or GPUs."""
        return self.slots + 1 if self.decides == "job" else self.gpus


def judge(policy: Any) -> tuple[list[Topdrl], list[str]]:
    """Compare a policy with the published rules with the same allocator, on the workloads that it was trained on."""
    from gangplan.simulator.gangs.allocate import ALLOCATORS

    from ..policies import PUBLISHED

    return [Topdrl(policy.settings.size)], [f"{name}+{ALLOCATORS[policy.allocator]}" for name in PUBLISHED]


RECIPE = Recipe(
    name=NAME,
    about="which job of the queue starts next on a cluster where close GPUs are faster",
    config=TopdrlSettings,
    stages=staged(
        f"{__package__}.learners:TopdrlTraining",
        lambda of: {
            "imitation": (of.imitation_updates, of.imitation_updates // 5),
            "rl": (of.rl_updates, of.validate_every),
        },
    ),
    load=Later(f"{__package__}.policy:TopdrlPolicy.load"),
    judge=judge,
    data="drawn workloads of TopDRL's mix",
)
