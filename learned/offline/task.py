"""What a problem brings so that the graph network plans for it: rules, among which the network chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.run import Run, never

SAMPLES = 16
"""Rules that are tried, the likeliest first."""


class Candidate(NamedTuple):
    """A plan: its objective, and what the decoder makes it of."""

    value: float
    made: Any


class Decoder(Protocol):
    """Builds plans of one problem."""

    def decode(self, rule: int) -> Candidate | None:
        """Return the plan of a rule, the classic one being 0; `None` if memory leads into a dead end."""

    def join(self, candidates: list[Candidate]) -> Candidate | None:
        """Return what some plans have in common, `None` if there is no such thing."""

    def plan(self, candidate: Candidate) -> Any:
        """Return it as the verifier takes it."""


@dataclass(frozen=True, slots=True)
class Task:
    """One problem.

    Attributes:
        name: of the recipe and its weights.
        objective: of the problem.
        rules: how many there are.
        split: from what the suite has prepared to what graphs are made of.
        decoder: from the same to its decoder, `None` if there plainly is no plan.
        teachers: methods, the searches first, with the share of the time left for each.
    """

    name: str
    objective: str
    rules: int
    split: Callable[[Any], Any]
    decoder: Callable[[Any], Decoder | None]
    teachers: tuple[tuple[str, float], ...]


def ranked(scores: FloatArray, rules: Sequence[int]) -> list[int]:
    """Return rules by falling mean of their scores over all ops, float64 (n, rules); of equal ones the first."""
    return [rules[i] for i in np.argsort(-scores.mean(axis=0), kind="stable")]


def candidates(
    decoder: Decoder, rules: Sequence[int], samples: int = SAMPLES, stopped: Callable[[], bool] = never
) -> Iterator[Candidate]:
    """Yield the plans of the first rules, and what all of these come to together."""
    found = list[Candidate]()
    for i, rule in enumerate(rules[:samples]):
        if i and stopped():
            return
        candidate = decoder.decode(rule)
        if candidate is not None:
            found.append(candidate)
            yield candidate
    if len(found) > 1 and not stopped() and (joined := decoder.join(found)) is not None:
        yield joined


def solve_by(task: Task, run: Run, prepared: Any, choose: Callable[[Any], Sequence[int]]) -> None:
    """Offer the plans of the classic rule, then of those that are chosen, until the run has stopped.

    Args:
        choose: from what graphs are made of to rules, the best first.
    """
    decoder = None if run.stopped else task.decoder(prepared)
    best = np.inf
    if decoder is None:
        return
    for choice in ((0,), None):
        if run.stopped:
            return
        for candidate in candidates(decoder, choice or choose(task.split(prepared)), stopped=lambda: run.stopped):
            if candidate.value < best * (1 - 1e-12) and not (run.stopped and run.plan is not None):
                run.offer(decoder.plan(candidate), "gnn")
            best = min(best, candidate.value)
