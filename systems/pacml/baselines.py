"""Policies to compare with: the published ones, and the same with a choice of the block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError

from .simulate import Acceptance, Decides, RampState

Rule = Callable[[RampState], int | None]
"""From the state to the index of a degree, or None to reject."""
Kept = Callable[[RampState, list[int]], int | None]
"""The same, given the degrees that have acceptable blocks, for one of these."""


@dataclass(slots=True)
class Published:
    """A degree by a rule that looks neither at blocks nor at completion times, and published first fit."""

    rule: Rule

    def decide(self, state: RampState) -> Acceptance | None:
        """Choose the degree of the rule."""
        degree = self.rule(state)
        return None if degree is None else Acceptance(degree)


@dataclass(slots=True)
class InOneBlock:
    """A degree by a rule among those with an acceptable block, and a block of that degree, in which the job is kept.

    Attributes:
        rule: for the degree.
        best: take the block that leaves the most free blocks, of equals the first (best fit); else the first.
    """

    rule: Kept
    best: bool = False

    def decide(self, state: RampState) -> Acceptance | None:
        """Choose the degree of the rule and its first or best block."""
        found = np.flatnonzero(state.acceptable)
        degree = self.rule(state, np.unique(state.blocks.degree[found]).tolist()) if len(found) else None
        if degree is None:
            return None
        found = found[state.blocks.degree[found] == degree]
        lost = [int(state.fits[state.blocks.touching(b)].sum()) for b in found.tolist()] if self.best else [0]
        return Acceptance(degree, int(found[int(np.argmin(lost))]))


def _valid(state: RampState) -> list[int]:
    """Return the degrees of no more servers than are free."""
    return [i for i, degree in enumerate(state.blocks.degrees) if degree <= state.free.sum()]


def _random(seed: int) -> Rule:
    """Return what draws a degree of no more servers than are free, each as likely."""
    rng = np.random.default_rng(seed)

    def draw(state: RampState) -> int | None:
        valid = _valid(state)
        return valid[int(rng.integers(len(valid)))] if valid else None

    return draw


def _constant(degree: int) -> Rule:
    def always(state: RampState) -> int | None:
        if degree not in state.blocks.degrees:
            raise InstanceError("policy", f"constant-{degree}: {degree} is not one of the degrees")
        return state.blocks.degrees.index(degree)

    return always


def make_policy(name: str, seed: int = 0) -> Decides:
    """Return the policy of a name: a rule for the degree, and how a block is chosen.

    ``RULE`` alone takes published first fit. ``RULE+first`` and ``RULE+best`` keep the job in one block that is free
    and in time, the first or the one that leaves the most free blocks. Rules: ``para-max``, ``para-min``, ``random``,
    ``constant-D``; with a block also ``smallest`` (acceptable degree), ``from-D`` (the smallest acceptable degree from
    D on) and ``about-D`` (the same, or else the largest acceptable below D). With a block ``para-max`` takes the
    largest acceptable degree.
    """
    stem, plus, block = name.partition("+")
    kind, _, number = stem.rpartition("-")
    degree = int(number) if number.isascii() and number.isdigit() and 0 < len(number) < 6 else 0
    alone: dict[str, Rule] = {
        "para-max": lambda state: max(_valid(state), default=None),
        # in time if speed-ups were linear
        "para-min": lambda state: next(
            (i for i, d in enumerate(state.blocks.degrees) if d >= 1 / state.fraction - 1e-9), None
        ),
        "random": _random(seed),
    }
    if kind == "constant" and degree:
        alone[stem] = _constant(degree)
    if not plus and stem in alone:
        return Published(alone[stem])
    kept: dict[str, Kept] = {
        rule: lambda state, found, made=made: degree if (degree := made(state)) in found else None  # type: ignore[misc]
        for rule, made in alone.items()
    }
    kept |= {"smallest": lambda state, found: found[0], "para-max": lambda state, found: found[-1]}
    if degree and kind in ("from", "about"):
        below = kind == "about"
        kept[stem] = lambda state, found: next(
            (i for i in found if state.blocks.degrees[i] >= degree), found[-1] if below else None
        )
    if block in ("first", "best") and stem in kept:
        return InOneBlock(kept[stem], block == "best")
    rules = "para-max, para-min, random, constant-D; with +first or +best also smallest, from-D, about-D"
    raise InstanceError("policy", f"{name!r} is not a rule, alone or with +first or +best; rules are {rules}")
