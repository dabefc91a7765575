"""What a problem brings so that the graph network plans for it: a decoder of scores, and what optima say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.run import Run

from ..graph.compiled import Graph
from ..graph.schema import Schema

SAMPLES = 16
"""Scores that are tried, those of the network the first, the others drawn around them."""


class DecodedPlan(NamedTuple):
    """A plan: its objective, and what the decoder makes it of."""

    value: float
    made: Any


class PlanLesson(NamedTuple):
    """What an optimal plan says of scores: the place of each item and its place without a score, (n,), and pairs.

    Attributes:
        rank, keys: of an item, the least first, equal ones in any order; a score is added to its key.
        together: how often two items share a place, as a share, (n, n), where scores say so; see `affinity`.
    """

    rank: NDArray[Any]
    keys: FloatArray
    together: FloatArray | None = None


class ScoreDecoder(Protocol):
    """Builds plans of one problem by scores of its items, (n, scores)."""

    def decode(self, choice: Any) -> DecodedPlan | None:
        """Return the plan of scores, the classic one being 0; `None` if this leads into a dead end."""

    def join(self, candidates: list[DecodedPlan]) -> DecodedPlan | None:
        """Return what some plans have in common, `None` if there is no such thing."""

    def plan(self, candidate: DecodedPlan) -> Any:
        """Return it as the verifier takes it, `None` if shares of GPUs do not fit."""

    def lesson(self, plan: Any) -> PlanLesson:
        """Return what a plan says of scores."""


@dataclass(frozen=True, slots=True)
class OfflineTask:
    """One problem.

    Attributes:
        name: of the recipe and its weights.
        objective: of the problem.
        scores: of each item: how many orders there are, and how many numbers for pairs, see `affinity`.
        schema: from the number of scores of each item to what graphs are made of.
        graph: from what the suite has prepared to the graph of a problem.
        decoder: from the same, and what tells to stop, to its decoder, `None` if there plainly is no plan.
        teachers: methods, the searches first, with the share of the time left for each.
    """

    name: str
    objective: str
    scores: tuple[int, int]
    schema: Callable[[int], Schema]
    graph: Callable[[Any], Graph]
    decoder: Callable[..., ScoreDecoder | None]
    teachers: tuple[tuple[str, float], ...]


def affinity(scores: Any) -> Any:
    """Return how much likelier than others two items share a place, as log odds, (n, n), of an array or a tensor.

    Args:
        scores: two vectors of each item, one after the other, (n, even); each meets the other one of its partner.
    """
    half = scores.shape[1] // 2
    one = scores[:, :half] @ scores[:, half:].T
    return (one + one.T) / 2


def drawn(scores: FloatArray, noise: float, seed: int) -> list[FloatArray]:
    """Return scores, and others drawn around them."""
    rng = np.random.default_rng(seed)
    return [scores, *(scores + noise * rng.standard_normal((SAMPLES - 1, *scores.shape)))]


def candidates(decoder: ScoreDecoder, choices: Sequence[Any], stopped: Callable[[], bool]) -> Iterator[DecodedPlan]:
    """Yield the plans of the choices, and what all of these come to together."""
    found = list[DecodedPlan]()
    for i, choice in enumerate(choices):
        if i and stopped():
            return
        candidate = decoder.decode(choice)
        if candidate is not None:
            found.append(candidate)
            yield candidate
    if len(found) > 1 and not stopped() and (joined := decoder.join(found)) is not None:
        yield joined


def solve_by(task: OfflineTask, run: Run, prepared: Any, choose: Callable[[Any, int], Sequence[Any]]) -> None:
    """Offer the classic plan, then those of the scores that are chosen, until the run has stopped.

    Args:
        choose: from what the suite has prepared and the seed to scores, those of the network first.
    """
    decoder = None if run.stopped else task.decoder(prepared, lambda: run.stopped)
    best = np.inf
    if decoder is None:
        return
    for choice in ((0,), None):
        if run.stopped:
            return
        for candidate in candidates(decoder, choice or choose(prepared, run.seed), lambda: run.stopped):
            if candidate.value < best * (1 - 1e-12) and not (run.stopped and run.plan is not None):
                plan = decoder.plan(candidate)
                if plan is not None:
                    run.offer(plan, "gnn")
            best = min(best, candidate.value)
