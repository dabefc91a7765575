"""Policies for PAC-ML's cluster by name: rules, plans of past arrivals, learned ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from gangplan.instances.errors import InstanceError, extra
from gangplan.learned.policy.weights import find, read_card, shipped

from ..baselines import make_policy as make_rule
from ..published.recipe import NAME as PUBLISHED
from ..simulate import Decides
from .hindsight import Futures, PastPlans
from .policy import RampPolicy
from .recipe import NAME

Maker = Callable[[int], Decides]
"""Makes a policy from a seed."""
PLANS, LEARNED = "plans", "learned"


def make_policy(name: str, units: str = "physical") -> Maker:
    """Return what makes the policy of a name from a seed.

    Args:
        name: a rule, see `gangplan.systems.pacml.baselines.make_policy`; ``plans`` of past arrivals; weights, a file
            or the name of some that come with the package, or ``learned`` for those of the units; ``+plans`` behind
            weights decides between their two best blocks by plans.
        units: ``physical`` or ``as-published``.

    Raises:
        InstanceError: naming the policy, if there is none of that name or it is for another problem.
    """
    if name == PLANS:
        return PastPlans
    stem = name.removesuffix(f"+{PLANS}")
    if stem == LEARNED:
        stem = NAME if units == "physical" else f"{NAME}-{units}"
    if stem not in shipped() and not stem.endswith(".safetensors"):
        try:
            make_rule(name)
        except InstanceError as error:
            own = ", ".join(x for x in shipped() if x.startswith(NAME))
            raise InstanceError("policy", f"{error.problem}; or {PLANS}, {LEARNED}, or weights: {own}") from None
        return partial(make_rule, name)
    if find_spec("torch") is None:
        raise InstanceError("policy", f"{name!r} needs torch; {extra('learn')}")
    path, planned = find(stem), name.endswith(f"+{PLANS}")
    if read_card(path).policy == PUBLISHED and not planned:
        from ..published.policy import PublishedPolicy

        return lambda seed: PublishedPolicy.load(path)
    return lambda seed: RampPolicy.load(path, futures=Futures(seed) if planned else None)
