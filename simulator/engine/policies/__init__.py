"""Policies of the engine, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...trace.simulate import ORDERS
from .orders import DRF, SRTF, Classes, Fixed, Tiresias
from .placing import Gandiva, Optimus, Tetris

__all__ = ["DRF", "POLICIES", "SRTF", "Classes", "Fixed", "Gandiva", "Optimus", "Tetris", "Tiresias"]

POLICIES: dict[str, Callable[[], Any]] = {
    **{name: partial(Fixed, name) for name in ORDERS},
    "srtf": SRTF,
    "tiresias": Tiresias,
    "drf": DRF,
    "tetris": Tetris,
    "gandiva": Gandiva,
    "optimus": Optimus,
}
"""The policies of `gangplan simulate` by name; those that order the queue for good are the fast simulator's."""
