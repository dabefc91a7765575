"""Blocking of the policy beside that of the best rules, on the same cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gangplan.instances import RampTopology
from gangplan.simulator.ramp import MODELS, Blocks, read_types
from gangplan.simulator.ramp import evaluate as simulate_all
from gangplan.simulator.ramp.step import Units

RIVALS = (
    "constant-2",
    "constant-4",
    "constant-6",
    "constant-16",
    "smallest+best",
    "from-2+best",
    "about-4+first",
    "from-8+best",
)
"""The best constants and rules with a block of each distribution, in either of the units: docs/pacml-results.md."""


def evaluate(
    policy: Any,
    seeds: Iterable[int],
    *,
    profiles: str = "../shared/data/pipedream",
    models: Sequence[str] = MODELS,
    units: Units = "physical",
    cluster: Sequence[int] = (4, 4, 2),
    load: float = 1.0,
    jobs: int = 1000,
    distributions: Sequence[str] = ("A", "B", "C", "D"),
    rivals: Sequence[str] = RIVALS,
) -> list[dict[str, Any]]:
    """Return a row for each policy, distribution and seed.

    Args:
        policy: the learned one.
        seeds: of the cases.
        profiles: folder of PipeDream profiles.
        models, units, cluster, load, jobs, distributions: what arrives where.
        rivals: rules to compare with.
    """
    blocks = Blocks(RampTopology(*cluster))
    types = read_types(profiles, models, blocks=blocks, units=units)
    chosen = list(seeds)
    found = simulate_all(
        types, [("learned", lambda seed: policy), *rivals], distributions=distributions, seeds=chosen, n=jobs, load=load
    )
    return [
        {
            "policy": x.policy, "distribution": x.distribution, "units": units, "seed": seed,
            "blocked": float(x.blocked[i]), "blocked_or_running": float(x.blocked_or_running[i]),
        }
        for x in found
        for i, seed in enumerate(chosen)
    ]  # fmt: skip
