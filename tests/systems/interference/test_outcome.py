"""Outcomes that somebody tampered with are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gangplan.simulator.snapshots import Long, Snapshots
from gangplan.systems.interference.baselines import Rule, run
from gangplan.systems.interference.cases import poisson
from gangplan.systems.interference.outcome import InterferenceOutcome, check

HONEST = run(poisson(1, jobs=5, servers=3, load=2.0), Rule("lif")).outcome()
"""Five jobs that all ran beside others."""


def where(**known: Long) -> InterferenceOutcome:
    """Return the outcome with some of its rows changed."""
    return replace(HONEST, where=replace(HONEST.where, **known))


def shifted(start: float, finish: float) -> InterferenceOutcome:
    """Return the outcome with the last job's times changed."""
    last = np.arange(5) == 4
    return replace(HONEST, start=HONEST.start + start * last, finish=HONEST.finish + finish * last)


def with_row(server: int, workers: int, ps: int) -> InterferenceOutcome:
    """Return the outcome with one more row of the first job."""
    old = HONEST.where
    columns = (np.concatenate([[x], y]) for x, y in ((server, old.server), (workers, old.workers), (ps, old.ps)))
    return replace(HONEST, where=Snapshots(old.first, old.kind, np.concatenate([[0], old.rows[1:] + 1]), *columns))


OLD = HONEST.where


@pytest.mark.parametrize(
    ("tampered", "words"),
    [
        (lambda: shifted(0, -1.0), "epochs"),
        (lambda: shifted(0, 1.0), "epochs"),
        (lambda: shifted(0, -1e6), "epochs"),
        (lambda: shifted(600, 600), "amid an interval"),
        (lambda: shifted(-9600, -9600), "before it is there"),
        (lambda: replace(HONEST, start=HONEST.start * 0 + 12_000, finish=HONEST.finish + 12_000), "holds more"),
        (lambda: where(server=(OLD.server + 1) % 3), "epochs"),
        (lambda: where(server=OLD.server * 0), "server twice"),
        (lambda: where(server=OLD.server + 3), "no server"),
        (lambda: where(server=OLD.server - 1), "no server"),
        (lambda: where(kind=(OLD.kind + 1) % 8), "another type"),
        (lambda: where(workers=OLD.workers * 2), "does not have the workers"),
        (lambda: with_row(2, 0, 0), "no server with tasks"),
        (lambda: with_row(2, 1, 0), "does not have the workers"),
        (lambda: with_row(2, -1, 2), "no server with tasks"),
        (lambda: replace(HONEST, finish=HONEST.finish[:4]), "not of the 5 jobs"),
        (lambda: replace(HONEST, where=OLD.keep(np.arange(4))[0]), "not of the 5 jobs"),
        (lambda: replace(HONEST, finish=HONEST.finish * np.nan), "did not run to its end"),
    ],
)
def test_refused(tampered: Callable[[], InterferenceOutcome], words: str) -> None:
    """A moved task, an early end, an overlap or another type is named; nothing wrong is said of the honest outcome."""
    assert check(HONEST) == []
    assert any(words in fault for fault in check(tampered()))
