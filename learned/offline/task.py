"""What a problem brings so that the graph network plans for it, and how its plans are made: one, then many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.solvers.run import Run, never

SAMPLES = 16
"""Plans that are drawn around the scores."""


class Candidate(NamedTuple):
    """A plan: its objective, and what the decoder makes it of."""

    value: float
    made: Any


class Decoder(Protocol):
    """Turns scores of the ops of one problem into plans; scores of 0 give the rule's."""

    def decode(self, scores: FloatArray) -> Candidate | None:
        """Return the plan of scores, float64 (n, outputs), `None` if memory leads into a dead end."""

    def join(self, candidates: list[Candidate]) -> Candidate | None:
        """Return what some plans have in common, or the best of them."""

    def plan(self, candidate: Candidate) -> Any:
        """Return it as the verifier takes it."""


class Lesson(NamedTuple):
    """What one plan says of scores s, row by row: sign (offset + sharp (s[more] - s[less])) should be large.

    Attributes:
        more, less: ops, int64 (rows,); less is -1 where there is none.
        column: of the scores; the same in all rows as -1 if any column will do.
        offset, sign: float32 (rows,).
    """

    more: IntArray
    less: IntArray
    column: IntArray
    offset: FloatArray
    sign: FloatArray


@dataclass(frozen=True, slots=True)
class Task:
    """One problem.

    Attributes:
        name: of the recipe and its weights.
        objective: of the problem.
        outputs: scores of an op.
        split: from what the suite has prepared to what graphs are made of.
        decoder: from the same to its decoder, `None` if there plainly is no plan.
        lesson: from a decoder and a plan to what that plan says of scores.
        teachers: methods, the searches first, with the share of the time left for each.
        sharp: what a score counts beside the offset of a lesson.
        spread: how far samples are drawn from the scores: all ops of a problem together, and each by itself.
    """

    name: str
    objective: str
    outputs: int
    split: Callable[[Any], Any]
    decoder: Callable[[Any], Decoder | None]
    lesson: Callable[[Any, Any], Lesson]
    teachers: tuple[tuple[str, float], ...]
    sharp: float
    spread: tuple[float, float]

    def noise(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return what a sample adds to the scores of n ops, float64 (n, outputs)."""
        together, alone = self.spread
        return together * rng.standard_normal((1, self.outputs)) + alone * rng.standard_normal((n, self.outputs))

    def pull(self, noise: FloatArray) -> FloatArray:
        """Return the gradient of the logarithm of the density of noise with respect to the scores it was added to."""
        together, alone = (x * x for x in self.spread)
        common = together / (alone + len(noise) * together) * noise.sum(axis=0)
        return np.asarray((noise - common) / alone)


def candidates(
    task: Task,
    decoder: Decoder,
    scores: FloatArray,
    rng: np.random.Generator,
    samples: int = SAMPLES,
    stopped: Callable[[], bool] = never,
) -> Iterator[Candidate]:
    """Yield the plan of scores, of samples around them, and what all of these come to together."""
    found = list[Candidate]()
    for i in range(samples + 1):
        if i and stopped():
            return
        candidate = decoder.decode(scores if i == 0 else scores + task.noise(rng, len(scores)))
        if candidate is not None:
            found.append(candidate)
            yield candidate
    if len(found) > 1 and not stopped() and (joined := decoder.join(found)) is not None:
        yield joined


def solve_by(task: Task, run: Run, prepared: Any, scores: Callable[[Any], FloatArray]) -> None:
    """Offer the rule's plan, that of the scores, and those of samples, until the run has stopped.

    Args:
        scores: from what graphs are made of to the scores of the ops.
    """
    decoder = None if run.stopped else task.decoder(prepared)
    if decoder is None:
        return
    split = task.split(prepared)
    rule = decoder.decode(np.zeros((split.seconds.shape[1], task.outputs)))
    best = np.inf
    if rule is not None:
        best = _offer(run, decoder, rule, best)
    if run.stopped:
        return
    told = scores(split)
    if not np.isfinite(told).all():
        run.note("the network's scores are not finite: the rule alone")
        return
    for candidate in candidates(task, decoder, told, np.random.default_rng(run.seed), stopped=lambda: run.stopped):
        best = _offer(run, decoder, candidate, best)


def _offer(run: Run, decoder: Decoder, candidate: Candidate, best: float) -> float:
    if candidate.value < best * (1 - 1e-12) and not (run.stopped and run.plan is not None):
        run.offer(decoder.plan(candidate), "gnn")
    return min(best, candidate.value)
