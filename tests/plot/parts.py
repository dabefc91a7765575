"""Boxes and dots apart, by name and colour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from gangplan.plot.scene import Boxes, Dots
from gangplan.plot.svg import each

Some = TypeVar("Some", Boxes, Dots)


def parts(marks: Iterable[Any], kind: type[Some]) -> list[Some]:
    """Return those marks of a kind that a pointer is told of, one for each name and colour, as they first come."""
    found: list[Some] = []
    for mark in marks:
        if not isinstance(mark, kind) or not mark.texts:
            continue
        n = len(mark.at)
        looks = [*zip(each(mark.name, n), each(mark.colour, n), strict=True)]
        for name, colour in dict.fromkeys(looks):
            mine = [i for i in range(n) if looks[i] == (name, colour)]
            texts, at = [mark.texts[i] for i in mine], np.asarray(mark.at)[mine]
            found.append(replace(mark, at=at, texts=texts, name=name, colour=colour))
    return found
