"""The weights that come with the package, read once."""

from __future__ import annotations

from functools import lru_cache

from ..policy.weights import find
from .policy import PlacementPolicy


@lru_cache(maxsize=1)
def shipped_policy() -> PlacementPolicy:
    """Return the policy that comes with the package.

    Raises:
        InstanceError: if its weights are missing or broken.
    """
    return PlacementPolicy.load(find("placement"))
