"""How a policy is judged: blocking rates on fixed cases in training, and beside the best rules afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gangplan.instances import RampTopology
from gangplan.simulator.ramp import DISTRIBUTIONS, MODELS, Blocks, read_types
from gangplan.simulator.ramp import evaluate as simulate_all
from gangplan.simulator.ramp.step import Units

from .episodes import run_episode
from .features import scratch_of
from .network import Network, compiled
from .scenarios import VALIDATION, Episode, Scenario
from .settings import Settings


class Validation:
    """Blocking rates by setting, published way of counting: jobs that end after the horizon are blocked.

    Args:
        cases: scenarios, and episodes in them; episodes of one name are averaged.
        choose: see `gangplan.learned.ramp.features.scratch_of`.
    """

    def __init__(self, cases: Sequence[tuple[Scenario, Sequence[Episode]]], *, choose: bool = True) -> None:
        self._cases = [
            (scenario, list(episodes), scratch_of(scenario.tables, choose=choose)) for scenario, episodes in cases
        ]

    def __call__(self, network: Network) -> dict[str, float]:
        """Return the blocking rate of each setting, and their mean as ``score``."""
        found: dict[str, list[float]] = {}
        for scenario, episodes, place in self._cases:
            weights = compiled(network, scenario.graphs)
            for x in episodes:
                finish = np.zeros(len(x.kind))
                run_episode(x.kind, x.beta, x.gap, scenario.tables, scenario.times, weights, place, finish)
                found.setdefault(x.name, []).append(1 - float((finish <= x.horizon).mean()))
        rates = {name: float(np.mean(values)) for name, values in found.items()}
        return {"score": float(np.mean(list(rates.values()))), **rates}


def validation(scenario: Scenario, settings: Settings) -> Validation:
    """Return what judges a network: cases of the published settings."""
    cases = _cases(scenario, settings)
    return Validation([(scenario, cases)], choose=settings.blocks)


def _cases(scenario: Scenario, settings: Settings) -> list[Episode]:
    return [
        scenario.draw(unit, name, VALIDATION + i, 1000, label=f"{unit} {name}")
        for unit in scenario.sets
        for name in DISTRIBUTIONS
        for i in range(settings.validation_seeds)
    ]


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
