"""Policies to compare with: the published ones, and the same with a choice of the block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError

from .blocks import Long
from .simulate import Choice, Policy, State


@dataclass(slots=True)
class Published:
    """A degree by a rule that looks neither at blocks nor at completion times, and published first fit.

    Attributes:
        rule: from the state to the index of a degree, or None to reject.
    """

    rule: Callable[[State], int | None]

    def decide(self, state: State) -> Choice | None:
        """Choose the degree of the rule."""
        degree = self.rule(state)
        return None if degree is None else Choice(degree)


@dataclass(slots=True)
class Kept:
    """A degree by a rule among those with an acceptable block, and a block of that degree, in which the job is kept.

    Attributes:
        rule: from the state, and the degrees that have acceptable blocks, to one of these or None.
        best: take the block that leaves the most free blocks (best fit); else the first (first fit).
    """

    rule: Callable[[State, list[int]], int | None]
    best: bool = False

    def decide(self, state: State) -> Choice | None:
        """Choose the degree of the rule and its first or best block."""
        found = np.flatnonzero(state.acceptable)
        degree = self.rule(state, np.unique(state.blocks.degree[found]).tolist()) if len(found) else None
        if degree is None:
            return None
        found = found[state.blocks.degree[found] == degree]
        return Choice(degree, int(best_fit(state, found) if self.best else found[0]))


def best_fit(state: State, found: Long) -> int:
    """Return which of the blocks `found` leaves the most of the free blocks; of equals the first."""
    lost = [int(state.fits[state.blocks.touching(block)].sum()) for block in found.tolist()]
    return int(found[int(np.argmin(lost))])


def para_max(state: State) -> int | None:
    """Return the largest degree of no more servers than are free."""
    valid = _valid(state)
    return valid[-1] if valid else None


def para_min(state: State) -> int | None:
    """Return the smallest degree of at least 1 / beta: in time if speed-ups were linear."""
    return next((i for i, d in enumerate(state.blocks.degrees) if d >= 1 / state.fraction - 1e-9), None)


@dataclass(slots=True)
class RandomValid:
    """Any degree of no more servers than are free, each as likely.

    Attributes:
        rng: the generator.
    """

    rng: np.random.Generator

    def __call__(self, state: State) -> int | None:
        """Draw a degree."""
        valid = _valid(state)
        return valid[int(self.rng.integers(len(valid)))] if valid else None


def _valid(state: State) -> list[int]:
    free = int(state.free.sum())
    return [i for i, degree in enumerate(state.blocks.degrees) if degree <= free]


def _among(rule: Callable[[State], int | None]) -> Callable[[State, list[int]], int | None]:
    """Return the rule for jobs kept in one block: reject unless its degree has an acceptable block."""

    def chosen(state: State, degrees: list[int]) -> int | None:
        degree = rule(state)
        return degree if degree in degrees else None

    return chosen


def _from(least: int) -> Callable[[State, list[int]], int | None]:
    """Return the smallest acceptable degree of at least `least` servers."""
    return lambda state, found: next((i for i in found if state.blocks.degrees[i] >= least), None)


def _about(least: int) -> Callable[[State, list[int]], int | None]:
    """Return the smallest acceptable degree of at least `least` servers, or else the largest below."""
    return lambda state, found: next((i for i in found if state.blocks.degrees[i] >= least), found[-1])


def _constant(degree: int) -> Callable[[State], int | None]:
    def always(state: State) -> int | None:
        if degree not in state.blocks.degrees:
            raise InstanceError("policy", f"constant-{degree}: {degree} is not one of the degrees")
        return state.blocks.degrees.index(degree)

    return always


PUBLISHED_POLICIES = ("para-max", "para-min", "random", *(f"constant-{d}" for d in (1, 2, 4, 6, 8, 16)))
BLOCK_RULES = (
    *("para-max", "para-min"),
    *(f"constant-{d}" for d in (2, 4, 6, 8, 16)),
    "smallest",
    *(f"{rule}-{d}" for rule in ("from", "about") for d in (2, 4, 8)),
)
RAMP_POLICIES = (*PUBLISHED_POLICIES, *(f"{rule}+{block}" for rule in BLOCK_RULES for block in ("first", "best")))
"""Names that `make_policy` knows; instead of these degrees it takes any of the case."""


def make_policy(name: str, seed: int = 0) -> Policy:
    """Return the policy of a name: a rule for the degree, and how a block is chosen.

    ``RULE`` alone takes published first fit. ``RULE+first`` and ``RULE+best`` keep the job in one block that is free
    and in time, the first or the one that leaves the most free blocks. Rules: ``para-max``, ``para-min``, ``random``,
    ``constant-D``; with a block also ``smallest`` (acceptable degree), ``from-D`` (the smallest acceptable degree from
    D on) and ``about-D`` (the same, or else the largest acceptable below D). With a block ``para-max`` takes the
    largest acceptable degree.

    Raises:
        InstanceError: naming the policy.
    """
    stem, plus, block = name.partition("+")
    rule, _, number = stem.rpartition("-")
    degree = int(number) if number.isascii() and number.isdigit() and 0 < len(number) < 6 else 0
    alone: dict[str, Callable[[State], int | None]] = {"para-max": para_max, "para-min": para_min}
    if stem == "random":
        alone[stem] = RandomValid(np.random.default_rng(seed))
    if rule == "constant" and degree:
        alone[stem] = _constant(degree)
    if not plus and stem in alone:
        return Published(alone[stem])
    kept: dict[str, Callable[[State, list[int]], int | None]] = {
        "smallest": lambda state, found: found[0],
        "para-max": lambda state, found: found[-1],
    }
    if degree and rule in ("from", "about"):
        kept[stem] = (_from if rule == "from" else _about)(degree)
    elif stem in alone and stem not in kept:
        kept[stem] = _among(alone[stem])
    if block in ("first", "best") and stem in kept:
        return Kept(kept[stem], block == "best")
    rules = "para-max, para-min, random, constant-D; with +first or +best also smallest, from-D, about-D"
    raise InstanceError("policy", f"{name!r} is not a rule, alone or with +first or +best; rules are {rules}")
