"""Colours of jobs, other ones next to each other, and of links by load."""

from __future__ import annotations

import numpy as np

from .cluster_tiles import Tiles
from .colours import FEW, colours
from .layout import FloatArray, IntArray

MOST = 24
"""Colours that can be told apart; with more jobs than these they are used again."""
PALE, DOWN_PAPER = "#e4e7eb", "#eceef1"
"""Of an idle GPU, and under the hatching of one that is not usable."""
LOADS = ("#fadd8f", "#f3a33c", "#dd5a27", "#9b1b30", "#4d0a2b")
"""Of links, from nearly idle to always busy."""
UNUSED = "#c3c9d1"
"""Of a link that no gang crosses."""


def job_colours(tiles: Tiles, jobs: int) -> list[str]:
    """Return a colour for each job: jobs in one unit or in two that follow each other have others, if there are enough.

    Jobs that hold most choose first, the colour that fewest of their neighbours have, then the one used least.
    """
    placed = tiles.job >= 0
    order = np.argsort(tiles.unit[placed], kind="stable")
    unit, job, amount = (x[placed][order] for x in (tiles.unit, tiles.job, tiles.amount))
    near: list[set[int]] = [set() for _ in range(jobs)]
    before: set[int] = set()
    last = -2
    for here in np.unique(unit).tolist():
        present = set(job[np.searchsorted(unit, here) : np.searchsorted(unit, here, side="right")].tolist())
        for j in present:
            near[j] |= present | (before if here == last + 1 else set())
        for j in before if here == last + 1 else ():
            near[j] |= present
        before, last = present, here
    palette = colours(min(MOST, max(jobs, len(FEW))))
    chosen = np.full(jobs, -1)
    used = np.zeros(len(palette))
    for j in np.argsort(-np.bincount(job, weights=amount, minlength=jobs), kind="stable").tolist():
        taken = np.bincount(chosen[[i for i in near[j] if chosen[i] >= 0]], minlength=len(palette))
        chosen[j] = np.lexsort((used, taken))[0]
        used[chosen[j]] += 1
    return [palette[c] for c in chosen.tolist()]


def load_colours(busy: FloatArray, gangs: IntArray) -> list[str]:
    """Return the colour of each link, given the share of time that it is busy and how many gangs cross it."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in LOADS], dtype=float)
    at = np.linspace(0, 1, len(stops))
    mixed = np.round([np.interp(busy, at, stops[:, k]) for k in range(3)]).astype(int).T
    return ["#{:02x}{:02x}{:02x}".format(*c) if g else UNUSED for c, g in zip(mixed.tolist(), gangs, strict=True)]


def ink_on(colour: str) -> str:
    """Return the colour of text that can be read on `colour`: near black or white."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#222222" if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else "#ffffff"
