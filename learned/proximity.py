"""Policies for TopDRL's cluster by name: rules, searches, and learned ones."""

from __future__ import annotations

from collections.abc import Callable

from gangplan.instances import InstanceError
from gangplan.simulator.proximity import ALLOCATORS, DISCIPLINES, SCORES, Policy, Rollout, rule

PUBLISHED = ("fcfs", "sjf", "ljf", "random", "tetris", "smallest")
"""The rules that TopDRL was compared with."""
SEARCHES: dict[str, Callable[[int], Policy]] = {"rollout": lambda seed: Rollout(seed=seed)}
"""Policies that search, by name: what makes each from a seed."""


def make_policy(name: str, seed: int = 0) -> Policy:
    """Return the policy of a name: ``RULE[+DISCIPLINE][+ALLOCATOR]``, one of `SEARCHES`, or weights.

    Args:
        name: rules are those of `SCORES`, by default with the discipline that suits them and ``closest``; weights are
            a file, or the name of those that come with the package.
        seed: of a policy that draws.

    Raises:
        InstanceError: naming the policy, if there is none of that name or it is for another problem.
    """
    if name in SEARCHES:
        return SEARCHES[name](seed)
    stem, *parts = name.split("+")
    if stem in SCORES:
        discipline = parts.pop(0) if parts and parts[0] in DISCIPLINES else ""
        allocator = parts.pop(0) if parts and parts[0] in ALLOCATORS else "closest"
        if parts:
            words = f"of {', '.join(DISCIPLINES)} and then of {', '.join(ALLOCATORS)}"
            raise InstanceError("policy", f"{name!r}: {parts[0]!r} is not one {words}")
        return rule(stem, discipline, allocator, seed)
    return _learned(name)


def _learned(name: str) -> Policy:
    from .policy import find, read_card, recipe, shipped

    if not name.endswith(".safetensors") and name not in shipped():
        raise InstanceError("policy", f"{name!r} is not one of {', '.join((*SCORES, *SEARCHES))}, nor weights")
    path = find(name)
    found = recipe(read_card(path).policy).load(path)
    if not hasattr(found, "finish"):
        raise InstanceError("policy", f"{name!r} decides on another problem")
    policy: Policy = found
    return policy
