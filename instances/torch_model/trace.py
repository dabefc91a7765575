"""Trace a model: `torch.export` first, `torch.fx` where that fails."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO

from ..errors import InstanceError
from .cost import Profile, profile
from .exported import export
from .inplace import without_inplace
from .load import Model, said
from .program import Program
from .symbolic import symbolic

WAYS = {"torch.export": export, "torch.fx": symbolic}


def trace(model: Model) -> Profile:
    """Return the calls that a model makes on its example inputs, with what each computes and moves.

    Raises:
        InstanceError: with both reasons, if neither `torch.export` nor `torch.fx` can trace it.
    """
    reasons = []
    with _quiet():
        for name, way in WAYS.items():
            try:
                return _profiled(way(model))
            except Exception as error:
                reasons.append(f"{name}: {_short(said(error))}")
    raise InstanceError("model", f"{model.name!r} cannot be traced; {'; '.join(reasons)}")


def _profiled(program: Program) -> Profile:
    first = profile(program)
    changed = without_inplace(program, first.values)
    return first if changed is program else profile(changed)


def _short(text: str, most: int = 90) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to itself what torch says while it traces: warnings, and whole graphs when it fails."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
