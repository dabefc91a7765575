"""Policies for TopDRL's cluster by name: rules, searches, schedulers of the engine, and learned ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gangplan.instances import InstanceError
from gangplan.learned.policy.weights import FOLDER, named
from gangplan.learned.training.recipe import load_policy
from gangplan.simulator.engine import EngineScheduler
from gangplan.simulator.engine.policies import POLICIES
from gangplan.simulator.gangs.allocate import ALLOCATORS, Close

from .oracle import Oracle
from .rollout import Rollout
from .rules import DISCIPLINES, SCORES, TopdrlPatient, rule
from .simulate import Finishes
from .suites import ClusterSuite

PUBLISHED = ("fcfs", "sjf", "ljf", "random", "tetris", "smallest")
"""The rules that TopDRL was compared with."""
UNGUARDED = "-unguarded"
OTHERS: dict[str, Callable[[int], Finishes | EngineScheduler]] = {
    "oracle": lambda seed: Oracle(seed=seed),
    "patient": lambda seed: TopdrlPatient(),
    "rollout": lambda seed: Rollout(seed=seed),
    "srtf": lambda seed: EngineScheduler((POLICIES["srtf"](), Close()), "overtake"),
}
"""What is no rule, by name: what makes each from a seed. SRTF stops jobs, for the one with the least time left; the
oracle knows all arrivals."""


def make_policy(
    name: str, seed: int = 0, suite: ClusterSuite | None = None, folder: Path = FOLDER
) -> Finishes | EngineScheduler:
    """Return the policy of a name: ``RULE[+DISCIPLINE][+ALLOCATOR]``, one of `OTHERS`, or weights.

    Args:
        name: rules are those of `SCORES`, by default with the discipline that suits them and ``closest``; weights are
            a file, or the name of one in `folder`; ``-unguarded`` behind it leaves out the guard, ``+ALLOCATOR``
            changes the allocator.
        suite: what is to be decided on: weights called like it are preferred, and times are told in its steps.

    Raises:
        InstanceError: naming the policy, if there is none of that name or it is for another problem.
    """
    if name in OTHERS:
        return OTHERS[name](seed)
    stem, *parts = name.split("+")
    if stem in SCORES:
        discipline = parts.pop(0) if parts and parts[0] in DISCIPLINES else ""
        allocator = parts.pop(0) if parts and parts[0] in ALLOCATORS else "closest"
        if parts:
            words = f"of {', '.join(DISCIPLINES)} and then of {', '.join(ALLOCATORS)}"
            raise InstanceError("policy", f"{name!r}: {parts[0]!r} is not one {words}")
        return rule(stem, discipline, allocator, seed)
    path = weights_of(name, suite, folder)
    if path is None:
        raise InstanceError("policy", f"{name!r} is not one of {', '.join((*SCORES, *OTHERS))}, nor weights")
    return _learned(name, path, suite)


def weights_of(name: str, suite: ClusterSuite | None = None, folder: Path = FOLDER) -> Path | None:
    """Return the file of a policy's weights, if it has any: see `make_policy`."""
    return named(name.removesuffix(UNGUARDED).partition("+")[0], suite.name if suite else "", folder)


def _learned(name: str, path: Path, suite: ClusterSuite | None) -> Finishes:
    found = load_policy(name, path, "finish")
    if suite is not None and hasattr(found, "step"):
        found.step = suite.step
    if name.endswith(UNGUARDED):
        if not hasattr(found, "guarded"):
            raise InstanceError("policy", f"{name!r}: it has no guard to leave out")
        found.guarded = False
    allocator = name.partition("+")[2]
    if allocator:
        if allocator not in ALLOCATORS or not hasattr(found, "allocator"):
            raise InstanceError("policy", f"{name!r}: {allocator!r} is no allocator that it could have")
        found.allocator = ALLOCATORS.index(allocator)
    policy: Finishes = found
    return policy
