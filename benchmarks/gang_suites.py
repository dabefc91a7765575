"""The suites of placement: batches of gangs on clusters of equal nodes, from the package's generator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import PlacementProblem

from .case import Case


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches of one size, on nodes of eight A100s.

    Attributes:
        jobs, racks, nodes: how many jobs, how many racks, how many nodes in a rack.
        first, last: loads of the first and of the last seed, between them in even steps.
        seeds: how many, from 0 on.
        seconds: the time limit.
        compared: seeds that rivals get too.
    """

    jobs: int
    racks: int
    nodes: int
    first: float
    last: float
    seeds: int
    seconds: float
    compared: tuple[int, ...]

    @property
    def size(self) -> str:
        """Say how large they are."""
        return f"{self.jobs}@{self.racks * self.nodes}x8"

    def load(self, seed: int) -> float:
        """Return the load of the batch of a seed, which is the generator's seed too."""
        return self.first + (self.last - self.first) * seed / (self.seeds - 1)

    def name(self, seed: int) -> str:
        """Return the instance name of a batch."""
        return f"gangs/{self.size}/load{self.load(seed):.2f}/seed{seed}"

    def case(self, seed: int, method: str, limit: float | None = None) -> Case:
        """Return the case of a batch."""
        return Case(self.name(seed), "placement", method, limit or self.seconds, partial(self._make, seed))

    def _make(self, seed: int, data: Path) -> PlacementProblem:
        return gangs(self.jobs, self.racks, self.nodes, gpus=8, load=self.load(seed), seed=seed)


SIZES = (
    Batches(16, 2, 8, 0.6, 0.95, 20, 10.0, (4, 10, 16)),
    Batches(16, 2, 4, 0.8, 0.95, 10, 60.0, (0, 4, 8)),
    Batches(64, 4, 8, 0.9, 0.9, 10, 60.0, (0, 4, 8)),
)


def placement() -> list[Case]:
    """Return all batches."""
    return [size.case(seed, "auto") for size in SIZES for seed in range(size.seeds)]


def gang_rivals() -> list[Case]:
    """Return some of them by the package's models and the plain formulations, one after the other."""
    ours, plain = ("auto", "cpsat", "milp"), ("plain_cpsat", "plain_milp")
    cases = [size.case(seed, m, 20.0) for size in SIZES[:2] for seed in size.compared for m in (*ours, *plain)]
    # 64 jobs on 32 nodes are more than the MILP is for
    return cases + [SIZES[2].case(seed, m) for seed in SIZES[2].compared for m in (*ours[:2], *plain)]
