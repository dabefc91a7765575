"""Colours: of devices and jobs, neighbours far apart; of shares from 0 to 1; of text on any of them."""

from __future__ import annotations

from collections.abc import Sequence
from colorsys import hls_to_rgb

import numpy as np
from numpy.typing import NDArray

INK, GREY, FAINT, GRID = "#222222", "#555555", "#b8bec6", "#e3e6ea"
"""Of text, of what is said besides, of frames, of lines behind what is drawn."""
PALE, BAND, SHADE = "#e4e7eb", "#f1f3f6", "#8a929c"
"""Of what is idle, behind rows, and of hatching and areas."""
FEW = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7a5c9e")
"""The first seven are after Okabe and Ito (2008), for colour-blind readers too; yellow is darker, for white paper."""
GOLDEN_ANGLE = 0.381966


def colours(count: int) -> list[str]:
    """Return `count` colours as ``#rrggbb``."""
    if count <= len(FEW):
        return list(FEW[:count])
    found = []
    for i in range(count):
        red, green, blue = hls_to_rgb((0.58 + i * GOLDEN_ANGLE) % 1.0, (0.44, 0.64)[i % 2], 0.52)
        found.append(f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}")
    return found


def paler(colour: str, share: float = 0.55) -> str:
    """Return `colour` mixed with white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * share):02x}" for part in parts)


def mixed(share: NDArray[np.float64], stops: Sequence[str]) -> list[str]:
    """Return the colour of each share from 0 to 1 on a scale of colours."""
    known = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in stops], dtype=float)
    at = np.linspace(0, 1, len(stops))
    parts = np.round([np.interp(share, at, known[:, k]) for k in range(3)]).astype(int).T
    return ["#{:02x}{:02x}{:02x}".format(*part) for part in parts.tolist()]


def ink_on(colour: str) -> str:
    """Return the colour of text that can be read on `colour`: near black or white."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else "#ffffff"
