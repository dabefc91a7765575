"""What a configuration of the policy may say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gangplan.instances import InstanceError
from gangplan.simulator.ramp.step import Units

from ..policy.settings import PpoSettings, limited

Variant = Literal["gnn", "totals"]
"""``totals`` sees the cluster's and the job's totals only, no block and no op: an MLP, to compare with."""


@dataclass(frozen=True, slots=True)
class Settings(PpoSettings):
    """Hyper-parameters of the PAC-ML policy and its training, beside those of PPO (0 updates leave a stage out).

    Attributes:
        profiles: folder of the published models' PipeDream profiles.
        units: in which the network is trained and judged.
        variant: what the network sees.
        width: of its hidden layers.
        blocks: whether it chooses the block; else the first free one of the degree that it chooses.
        imitation_updates, imitation_rate, temperature, minibatch: of imitation.
        labels: decisions that the teacher labels by its table, in each published setting.
        searched: decisions that it labels by rollouts.
        planned: distributions of which it plans futures instead of playing on,
        planned_labels: decisions of each of them that it labels so.
        corrected: decisions that it labels besides, in states that the network comes to.
        corrected_updates, corrected_rate: of imitation with them.
        rounds: of policy iteration that make the teacher's table, and episodes in each.
        share_various: share of the lanes in which other networks, loads and users arrive, on clusters of 16 to 64.
        validate_every: updates of PPO from one validation to the next; of imitation, ten times as many.
        validation_seeds: cases of each published setting.
        rl_minutes: of wall-clock time for PPO at most.
        processes: that label at once.
    """

    profiles: str = "../shared/data/pipedream"
    units: tuple[Units, ...] = ("physical",)
    variant: Variant = "gnn"
    width: int = limited(96, least=1)
    blocks: bool = True
    imitation_updates: int = limited(4000, least=0)
    imitation_rate: float = limited(2e-3, above=0)
    temperature: float = limited(0.02, above=0)
    minibatch: int = limited(512, least=1)
    labels: int = limited(6000, least=1)
    searched: int = limited(1500, least=0)
    planned: tuple[str, ...] = ()
    planned_labels: int = limited(5000, least=0)
    corrected: int = limited(800, least=0)
    corrected_updates: int = limited(2000, least=0)
    corrected_rate: float = limited(1e-3, above=0)
    rounds: int = limited(7, least=1)
    share_various: float = limited(0.25, least=0, below=1)
    validate_every: int = limited(25, least=1)
    validation_seeds: int = limited(4, least=1)
    rl_minutes: float = limited(5.0, above=0)
    processes: int = limited(2, least=1)

    def __post_init__(self) -> None:
        PpoSettings.__post_init__(self)
        for name, wrong, why in (
            ("planned", not set(self.planned) <= set("ABCD"), "names others than A, B, C, D"),
            ("units", not self.units or len(set(self.units)) < len(self.units), "names none, or one twice"),
            (
                "share_various",
                round(self.lanes * self.share_various) == self.lanes,
                f"of {self.lanes} lanes leaves none",
            ),
        ):
            if wrong:
                raise InstanceError(name, f"{getattr(self, name)!r} {why}")
