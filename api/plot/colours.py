"""One colour a device, neighbours in the pipeline far apart."""

from __future__ import annotations

from colorsys import hls_to_rgb

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
