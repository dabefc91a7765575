"""What the learned PAC-ML policy is judged on, and who else is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from gangplan.systems.pacml.arrivals import SEQUENTIAL, SERVERS
from gangplan.systems.pacml.jobs import MODELS
from gangplan.systems.pacml.step import Units

LEARNED, UNGUARDED, RANDOM, BOUND, PLAN = "learned", "unguarded", "random scores", "bound", "plan"
"""Policies by name: the learned one, the same without its guard, the same with random scores for the network's, the
LP's bound, and the schedule that beam search finds; the last two know all arrivals."""

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
KEPT = tuple(f"{name}+best" for name in CONSTANTS[1:])
"""A constant degree, and the block that leaves the most free blocks."""
BLOCK_RULES = (
    *("para-max", "para-min"),
    *(f"constant-{d}" for d in (2, 4, 6, 8, 16)),
    "smallest",
    *(f"{rule}-{d}" for rule in ("from", "about") for d in (2, 4, 8)),
)
RULES = tuple(f"{rule}+{block}" for rule in BLOCK_RULES for block in ("first", "best"))
"""A degree by rule, and a choice of the block."""
RAMP_POLICIES = ("para-max", "para-min", "random", *CONSTANTS, *RULES)

BEST = (
    *("constant-4+best", "constant-8+best", "from-2+best", "from-4+best", "from-8+best", "about-4+best"),
    *("about-8+best", "para-min+best", "smallest+best", "smallest+first"),
)
"""Rules that are best or near it somewhere, for settings in which running all of them takes too long."""

QUICK = ("smallest+best", "smallest+first", "about-4+first", "from-4+first", "from-8+first")
"""Rules for large clusters, where best fit takes 10 ms a decision."""

ROLLOUTS, DEGREES, PLANS = "rollouts of 24 futures", "rollouts of 24 futures, degree only", "plans of 16 futures"
SEARCHES: dict[str, dict[str, bool]] = {
    ROLLOUTS: {"planned": False, "blocks": True},
    DEGREES: {"planned": False, "blocks": False},
    PLANS: {"planned": True, "blocks": True},
}
"""How `benchmarks.pacml_search.Searched` searches, by name."""

PAST = {f"plans of {n} futures, drawn from the past": n for n in (16, 2)}
"""Futures of search without learning that knows what a user does, by name; with two it takes no more time than what
follows, which plans 16 between two candidates."""
BOTH, RANDOM_BOTH = "learned, then plans", "random scores, then plans"
"""Plans choose between the two blocks that the learned policy names, or that random scores do."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Policies to simulate on the same cases.

    Attributes:
        units: of completion times.
        policies: names that `make_policy` knows, those above, searches, ablations.
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

    def case(self, distribution: str) -> str:
        """Return its name in the rows."""
        return f"{self.units} {self.models} {self.cluster} {self.load:g} {self.jobs} {distribution}"

    @classmethod
    def read(cls, case: str) -> tuple[Cell, str]:
        """Return the cell and the distribution of a name in the rows."""
        units, models, cluster, load, jobs, distribution = case.split()
        return cls(cast(Units, units), (), models, cluster, float(load), int(jobs)), distribution


_BASE = {
    "width": 96, "shorter": 0, "imitation_updates": 3000, "searched": 1500, "planned_labels": 5000, "corrected": 800,
    "planned_corrected": 800, "corrected_updates": 3000, "validate_every": 250, "processes": 1,
}  # fmt: skip
"""Of all ablations, in either of the units, in place of what the shipped configuration says."""
BUDGET = {
    **_BASE,
    "labels": 4000, "searched": 0, "planned_labels": 0, "rounds": 5, "corrected_updates": 0, "imitation_updates": 1500,
}  # fmt: skip
"""Of all but the policy of degrees: half of imitation, no correction."""
WHOLE, DEGREE = "imitation only", "degree only"
TRAINED: Mapping[str, dict[str, Any]] = {
    WHOLE: BUDGET,
    DEGREE: {**_BASE, "blocks": False, "planned": []},
}
"""Ablations: what differs from the shipped configuration. Rows have two more, of what a network sees."""

GRAPHS, ROWS = "with the op graph", "without"
TWINS = {x: [f"{x}, training seed {seed}" for seed in (0, 1)] for x in (GRAPHS, ROWS)}
"""Policies that differ in whether they read the op graph, which generalises no better and left: there are rows."""
GENERALISED = tuple(Cell(u, (), models) for u in ("as-published", "physical") for models in ("five", "nine"))


def _suites() -> dict[str, tuple[Cell, ...]]:
    units: tuple[Units, Units] = ("as-published", "physical")
    near = (LEARNED, UNGUARDED, *CONSTANTS, *BEST)
    far = (LEARNED, *CONSTANTS, *QUICK)
    physical = Cell("physical", near, seeds=5)
    return {
        "main": tuple(Cell(u, (LEARNED, UNGUARDED, RANDOM, *RAMP_POLICIES)) for u in units),
        "bounds": tuple(Cell(u, (BOUND, PLAN)) for u in units),
        "models": (
            *(Cell(u, near, "nine", seeds=5) for u in units),
            *(replace(physical, models=name, seeds=3) for name in OTHERS),
        ),
        "loads": tuple(Cell(u, near, load=load, seeds=5) for u in units for load in LOADS),
        "clusters": (
            # half as many arrivals a server as published on 128 servers, an eighth on 512
            *(Cell("physical", far, cluster="8x8x2", load=load, jobs=2000, seeds=3) for load in LOADS[::2]),
            Cell("as-published", far, cluster="8x8x4", jobs=2000, seeds=3),
            Cell("physical", far, cluster="8x8x8", load=1.0, jobs=2000, seeds=3),
        ),
        "search": (
            *(Cell(u, tuple(SEARCHES), seeds=2) for u in units),
            *(Cell(u, tuple(PAST), seeds=5) for u in units),
            *(Cell(u, (BOTH, RANDOM_BOTH)) for u in units),
        ),
        ABLATIONS: tuple(Cell(u, tuple(TRAINED)) for u in units),
    }


ABLATIONS = "ablations"
"""The suite that trains, and is run only if it is asked for."""
SUITES = _suites()
"""By name, what is run in one go."""
