"""PAC-ML's ground: jobs that a RAMP cluster accepts at once, or blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.arrays import require_choice
from gangplan.instances.intake import cluster_sizes
from gangplan.simulator.ground import Figure, Ground, Maker, refuse, setting

if TYPE_CHECKING:
    from .arrivals import ArrivalCase
    from .check import Checker
    from .jobs import JobType

UNITS = ("physical", "as-published")
GENERATED = ("resnet", "vgg", "gnmt", "inception", "bert")
"""Networks that stand for the published models where no profiles are named; they fit on one server each."""
JOBS, LOAD = 1_000_000, 100.0
"""At most."""


@dataclass(frozen=True)
class Pacml(Ground):
    """Let jobs arrive on a RAMP cluster, accepted at once or blocked, and compare how many each policy blocks.

    The protocol, and by default everything else, is PAC-ML's (arXiv 2301.13799).

    Attributes:
        profiles: folder of PipeDream profiles, one NAME.txt a model; or what arrives; by default generated networks.
        distribution: of what users accept, A, B, C or D.
        units: ``physical``, or ``as-published``: transfers 1000 times too cheap.
        models: profiles or generators, joined by commas; by default the published five, or five like them.
        cluster: communication groups x racks x servers in a rack.
        jobs, load, poisson: see `arrivals`.
    """

    figures: ClassVar[Mapping[str, Figure]] = {
        "blocked_or_running": Figure("blocked or running, %", "%"),
        "blocked": Figure("blocked, %", "%"),
        "seconds": Figure("simulated in", "s"),
    }
    usual = ("para-max", "para-min", "random", *(f"constant-{d}" for d in (1, 2, 4, 6, 8, 16)))

    profiles: str | Sequence[JobType] = setting(
        "", "folder of PipeDream profiles, one NAME.txt a model; by default generated networks", metavar="FOLDER"
    )
    distribution: str = setting("A", "of what users accept", many=True, shown="A,B,C,D")
    units: str = setting("physical", "physical, or as-published: transfers 1000 times too cheap")
    models: str = setting("", "of the profiles, joined by commas  [default: the published five]")
    cluster: str = setting("4x4x2", "communication groups x racks x servers in a rack")
    jobs: int = setting(1000, "that arrive")
    load: float = setting(1.0, "offered work, as a multiple of the published")
    poisson: bool = setting(False, "arrivals at random instead of evenly")

    def __post_init__(self) -> None:
        require_choice(self.units, "units", UNITS)
        require_choice(self.distribution, "distribution", ("A", "B", "C", "D"))
        if not 1 <= self.jobs <= JOBS:
            raise InstanceError("jobs", f"{self.jobs!r} is not from 1 to {JOBS}")
        if not 0 < self.load <= LOAD:
            raise InstanceError("load", f"{self.load!r} is not from 0 to {LOAD:g}")

    @property
    def case(self) -> str:  # type: ignore[override]
        """The distribution."""
        return self.distribution

    @cached_property
    def types(self) -> tuple[JobType, ...]:
        """What arrives."""
        if not isinstance(self.profiles, str):
            return tuple(self.profiles)
        return _types(self.profiles, self.models, self.cluster, self.units)

    @cached_property
    def _checker(self) -> Checker:
        from .check import Checker

        return Checker()

    def draw(self, seed: int) -> ArrivalCase:
        """See `Ground`."""
        from .arrivals import arrivals

        return arrivals(self.types, self.distribution, seed, n=self.jobs, load=self.load, poisson=self.poisson)

    def arrays(self, drawn: ArrivalCase) -> Sequence[NDArray[Any]]:
        """See `Ground`."""
        return drawn.submit, drawn.model, drawn.limit

    def about(self, drawn: ArrivalCase) -> str:
        """See `Ground`."""
        models, servers = len(self.types), self.types[0].blocks.n_servers
        return f"{self.jobs} jobs of {models} models on {servers} servers, {self.units} units, load {self.load:g}"

    @classmethod
    def policies(cls) -> str:
        """See `Ground`."""
        own = "smallest+best; plans (of past arrivals); learned, or weights, alone or with +plans"
        return f"{', '.join(cls.usual[:4])}, ..., {own}"

    def policy(self, name: str) -> Maker:
        """See `Ground`."""
        from .learned.policies import make_policy

        make = make_policy(name, self.units)
        make(0)  # a wrong name is told before the work begins
        return lambda drawn, seed: make(seed)

    def play(self, policy: Any, drawn: ArrivalCase) -> Mapping[str, float]:
        """See `Ground`."""
        from .simulate import simulate

        begin = perf_counter()
        outcome = simulate(drawn, policy)
        seconds = perf_counter() - begin
        refuse(self._checker.check(outcome))
        figures = float(outcome.blocked_or_running), float(outcome.blocked), seconds
        return dict(zip(self.figures, figures, strict=True))

    def bound(self, drawn: ArrivalCase, time_limit: float) -> float:
        """See `Ground`: of policies that keep a job in one block; published first fit may let it spill out."""
        from .plans import clairvoyant

        return clairvoyant(drawn, time_limit=time_limit, width=1, by_horizon=True).bound


@cache
def _types(profiles: str, models: str, cluster: str, units: Any) -> tuple[JobType, ...]:
    from .jobs import MODELS, Blocks, generated_types, read_types

    blocks = Blocks(RampTopology(*cluster_sizes(cluster, "", "4x4x2")))
    names = tuple(dict.fromkeys(x.strip() for x in models.split(",") if x.strip()))
    if not profiles:
        return generated_types(names or GENERATED, blocks=blocks, units=units)
    return read_types(profiles, names or MODELS, blocks=blocks, units=units)
