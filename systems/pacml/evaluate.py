"""Blocking rates of policies on the same arrivals, over seeds; every outcome is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np

from gangplan.instances.arrays import FloatArray

from .arrivals import arrivals
from .baselines import make_policy
from .check import Checker
from .jobs import JobType
from .simulate import Policy, simulate

Maker = Callable[[int], Policy]
"""Makes a policy from a seed."""


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Blocking of one policy on one distribution, over s seeds.

    Attributes:
        policy, distribution: their names.
        blocked: float64 (s,), jobs that never ran, of all.
        blocked_or_running: float64 (s,), the published rate: those still running at the end count too.
        seconds: float64 (s,), of each simulation, without its check.
    """

    policy: str
    distribution: str
    blocked: FloatArray
    blocked_or_running: FloatArray
    seconds: FloatArray


def evaluate(
    types: Sequence[JobType],
    policies: Sequence[str | tuple[str, Maker]],
    *,
    distributions: Sequence[str] = ("A", "B", "C", "D"),
    seeds: Sequence[int] = range(5),
    n: int = 1000,
    load: float = 1.0,
    poisson: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Rates]:
    """Simulate every policy on every distribution and seed; the arrivals of a seed are the same for all policies.

    Args:
        types, n, load, poisson: as of `arrivals`.
        policies: names that `make_policy` knows, or a name and what makes the policy.
        distributions: published names.
        seeds: of arrivals, and of policies that draw.
        progress: called with the share of simulations done.

    Raises:
        InstanceError: naming the argument and the value found.
        RuntimeError: if the check finds a fault, which is a defect of this library.
    """
    makers = [(p, partial(make_policy, p)) if isinstance(p, str) else p for p in policies]
    for _, make in makers:
        make(0)  # a wrong name is told before the work begins
    checker, found = Checker(), list[Rates]()
    for name in distributions:
        cases = [arrivals(types, name, seed, n=n, load=load, poisson=poisson) for seed in seeds]
        for policy, make in makers:
            rows = np.zeros((3, len(seeds)))
            for k, (seed, case) in enumerate(zip(seeds, cases, strict=True)):
                begin = perf_counter()
                outcome = simulate(case, make(seed))
                rows[:, k] = outcome.blocked, outcome.blocked_or_running, perf_counter() - begin
                faults = checker.check(outcome)
                if faults:
                    raise RuntimeError(f"{policy} on {name}, seed {seed}: {'; '.join(faults)}")
                progress((len(found) + (k + 1) / len(seeds)) / (len(makers) * len(distributions)))
            found.append(Rates(policy, name, *rows))
    return found
