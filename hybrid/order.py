"""Who gets the time: the portfolio's order and shares for one problem, by how hard that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gangplan.instances.verify import Problem
from gangplan.solvers import Run

from .hardness import chance, parts, size
from .loading import loaded
from .registry import Entry, installed, is_own, named, suited

APART = 0.04
"""Seconds left from which on a process of its own is worth its start."""
SHORT, _SHORT_SHARE, _QUICK_SHARE = 0.5, 0.9, 0.5
"""Seconds left below which everybody has a larger share, or it would be too small for anything; quick ones less."""
_EACH = 1e-4
"""Seconds for each part of a problem that a policy takes to encode it and to answer."""
_SOON = 0.25
"""Of the time left: exact methods that are likely to be done by then go before the policy."""
_LOADS = 6.0
"""Seconds left with which a policy may have to be loaded first; with less it is there already, or never runs."""
_HOPELESS = 0.1
"""A chance of a proof below which an exact method leaves half of its time to those that search."""
_LIKELY, _LIKELY_SHARE = 0.7, 0.8
"""A chance from which on it gets so much of the time at least."""


def first(run: Run) -> list[Entry]:
    """Return the quick methods that are worth their milliseconds now; where there are few, each may take them all."""
    left = run.remaining()
    if policy_begins(run):
        return []
    quick = [entry for entry in suited(run.problem) if entry.quick and is_own(entry) and left >= entry.least]
    return [replace(entry, share=max(entry.share, _least(left, _QUICK_SHARE))) for entry in quick]


def policy_begins(run: Run) -> bool:
    """Return whether a policy goes before the quick methods: in milliseconds, where it is there and has the time."""
    left, methods = run.remaining(), named(run.problem.objective)
    return left < APART and any(
        entry.learned and left >= _needs(entry, run.problem) and loaded(methods[entry.name])
        for entry in suited(run.problem)
    )


def plan(run: Run, prepared: Any, done: Sequence[Entry] = ()) -> list[Entry]:
    """Return what runs after the quick methods in `done`, in order, with the shares they get; the last gets all."""
    problem, methods = run.problem, named(run.problem.objective)
    over, begins = {entry.name for entry in done if entry.quick}, policy_begins(run)
    entries = []
    for entry in sorted(suited(problem, run.remaining()), key=lambda entry: not (begins and entry.learned)):
        method = methods[entry.name]
        if entry.quick and (entry.name in over or (run.remaining() >= entry.least and not begins)):
            continue
        if not method.suits(prepared):
            run.note(unsuited(entry.name))
        elif not installed(method):
            run.note(lacking(entry.name, method.library))
        elif entry.learned:
            if run.remaining() < _needs(entry, problem):
                run.no_time(f"{entry.name} left out: no time to encode the problem")
            else:
                entries.append(entry)
        elif method.exact or entry.proves:
            entries.append(replace(entry, share=_hopeful(entry.share, chance(problem, entry.share * run.remaining()))))
        else:
            entries.append(entry)
    if run.remaining() >= _LOADS:
        entries.sort(key=lambda entry: size(problem) > entry.soon)
    if run.remaining() >= _LOADS and chance(problem, _SOON * run.remaining()) > 0.5:
        # between the exact methods and the last word
        late = [entry for entry in entries if entry.learned]
        rest = [entry for entry in entries if not entry.learned]
        entries = [*rest[:-1], *late, *rest[-1:]]
    least = _least(run.remaining(), _SHORT_SHARE)
    entries = [replace(entry, share=max(entry.share, least)) for entry in entries]
    return [*entries[:-1], *(replace(entry, share=1.0) for entry in entries[-1:])]


def _needs(entry: Entry, problem: Problem) -> float:
    return max(entry.least, _EACH * parts(problem))


def _least(left: float, short: float) -> float:
    """Return the share that everybody has at least: all where there are milliseconds, `short` of a short time."""
    return 1.0 if left < APART else short if left < SHORT else 0.0


def _hopeful(share: float, proof: float) -> float:
    """Return the share of an exact method with that chance of a proof: half without one, all but a rest if likely."""
    return share / 2 if proof < _HOPELESS else max(share, _LIKELY_SHARE) if proof > _LIKELY else share


def lacking(name: str, library: str) -> str:
    """Return the note on a method whose library is not installed."""
    return f"{name} left out: {library} is not installed"


def unsuited(name: str) -> str:
    """Return the note on a method that does not suit a problem."""
    return f"{name} left out: it does not model all of the problem, or its model would be too large"
