"""What the learned PAC-ML policy is judged on: published and physical units, then what it was not trained on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gangplan.simulator.ramp import MODELS, RAMP_POLICIES
from gangplan.simulator.ramp.arrivals import SEQUENTIAL, SERVERS
from gangplan.simulator.ramp.step import Units

from .pacml_rows import BOUND, LEARNED, PLAN, UNGUARDED

OTHERS = (
    "densenet121", "gnmt_large", "inception_v3", "nasnetalarge", "nasnetamobile", "resnet101", "resnet50", "resnext101",
    "resnext50",
)  # fmt: skip
"""PipeDream's other models."""

GROUPS = {"five": MODELS, "nine": OTHERS} | {name: (name,) for name in OTHERS}
"""What may arrive, by name: an even pool."""

PUBLISHED = round(SEQUENTIAL / SERVERS, 3)
"""The published load: sequential work offered a second, as a share of what the servers can do."""

LOADS = (0.5, 0.75, 1.0, 1.25, 1.5)
CONSTANTS = tuple(f"constant-{d}" for d in (1, 2, 4, 6, 8, 16))
RULES = tuple(p for p in RAMP_POLICIES if "+" in p)
"""A degree by rule, and a choice of the block."""

BEST = (
    *("constant-4+best", "constant-8+best", "from-2+best", "from-4+best", "from-8+best", "about-4+best"),
    *("about-8+best", "para-min+best", "smallest+best", "smallest+first"),
)
"""Rules that are best or near it somewhere, for settings in which running all of them takes too long."""

QUICK = ("smallest+best", "smallest+first", "about-4+first", "from-4+first", "from-8+first")
"""Rules for large clusters, where best fit takes 10 ms a decision."""

ROLLOUTS, SAMPLED = "rollouts of 24 futures", "beam search in 16 futures"
ABLATIONS = ("both", "imitation only", "RL only", "totals", "no choice of the block")


@dataclass(frozen=True, slots=True)
class Cell:
    """Policies to simulate on the same cases.

    Attributes:
        units: of completion times.
        policies: names, see `benchmarks.pacml_rows.PacmlRow.policy`.
        models: one of `GROUPS`.
        cluster: communication groups x racks x servers.
        load: sequential work offered a second, as a share of what the servers can do.
        jobs: that arrive.
        seeds: 0 to before this.
    """

    units: Units
    policies: tuple[str, ...]
    models: str = "five"
    cluster: str = "4x4x2"
    load: float = PUBLISHED
    jobs: int = 1000
    seeds: int = 10

    @property
    def multiple(self) -> float:
        """The load as `arrivals` wants it, as a multiple of the published one."""
        return 1.0 if self.load == PUBLISHED else self.load * SERVERS / SEQUENTIAL

    @property
    def size(self) -> tuple[int, int, int]:
        """The cluster's numbers."""
        groups, racks, servers = map(int, self.cluster.split("x"))
        return groups, racks, servers

    @property
    def place(self) -> tuple[str, str, str, float, int]:
        """What tells its cases from others."""
        return self.units, self.models, self.cluster, self.load, self.jobs


def _suites() -> dict[str, tuple[Cell, ...]]:
    units: tuple[Units, Units] = ("as-published", "physical")
    main = tuple(Cell(u, (LEARNED, UNGUARDED, *RAMP_POLICIES)) for u in units)
    near = (LEARNED, UNGUARDED, *CONSTANTS, *BEST)
    far = (LEARNED, *CONSTANTS, *QUICK)
    physical = Cell("physical", near, seeds=5)
    return {
        "main": main,
        "bounds": tuple(Cell(u, (BOUND, PLAN)) for u in units),
        "models": (
            *(Cell(u, near, "nine", seeds=5) for u in units),
            *(replace(physical, models=name, seeds=3) for name in OTHERS),
        ),
        "loads": tuple(Cell(u, near, load=load, seeds=5) for u in units for load in LOADS),
        "clusters": (
            # half as many arrivals a server as published on 128 servers, an eighth on 512
            *(Cell("physical", far, cluster="8x8x2", load=load, jobs=2000, seeds=3) for load in LOADS[::2]),
            Cell("physical", far, cluster="8x8x8", load=1.0, jobs=2000, seeds=3),
        ),
        "search": tuple(Cell(u, (ROLLOUTS, SAMPLED), seeds=2) for u in units),
    }


SUITES = _suites()
"""By name, what is run in one go."""
