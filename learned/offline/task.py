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


_SIZES = np.array([0.5, 1.0, 2.0])
"""Of samples, times their spread."""
_LEAST_ALONE = 0.05
"""What gradients take for the second `Task.spread` where that is 0."""


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
        spread: how far samples are drawn from the scores: along figures of the ops, and each op by itself.
        kept: probability with which a column is drawn at all.
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
    kept: float

    def noise(self, rng: np.random.Generator, basis: FloatArray) -> FloatArray:
        """Return what a sample adds to the scores, float64 (n, outputs), to some of the columns."""
        along, alone = self.spread
        size = float(rng.choice(_SIZES))
        noise = along * basis @ rng.standard_normal((basis.shape[1], self.outputs))
        if alone:
            noise += alone * rng.standard_normal(noise.shape)
        return noise * size * (rng.random(self.outputs) < self.kept)

    def pull(self, noise: FloatArray, basis: FloatArray) -> FloatArray:
        """Return the gradient of the logarithm of the density of noise with respect to the scores it was added to."""
        along, alone = self.spread[0], max(self.spread[1], _LEAST_ALONE)
        inner = basis.T @ basis + (alone / max(along, alone)) ** 2 * np.eye(basis.shape[1])
        return np.asarray(noise - basis @ np.linalg.solve(inner, basis.T @ noise)) / alone**2


class Told(NamedTuple):
    """Scores of the ops of a problem, float64 (n, outputs), and what samples are drawn along, see `graphs.basis`."""

    scores: FloatArray
    basis: FloatArray


def candidates(
    task: Task,
    decoder: Decoder,
    told: Told,
    rng: np.random.Generator,
    samples: int = SAMPLES,
    stopped: Callable[[], bool] = never,
) -> Iterator[Candidate]:
    """Yield the plan of scores, of samples around them, and what all of these come to together."""
    found = list[Candidate]()
    for i in range(samples + 1):
        if i and stopped():
            return
        candidate = decoder.decode(told.scores + task.noise(rng, told.basis) if i else told.scores)
        if candidate is not None:
            found.append(candidate)
            yield candidate
    if len(found) > 1 and not stopped() and (joined := decoder.join(found)) is not None:
        yield joined


def solve_by(task: Task, run: Run, prepared: Any, policy: Callable[[Any], Told]) -> None:
    """Offer the rule's plan, that of the scores, and those of samples, until the run has stopped.

    Args:
        policy: from what graphs are made of to the scores.
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
    told = policy(split)
    if not np.isfinite(told.scores).all():
        run.note("the network's scores are not finite: the rule alone")
        return
    for candidate in candidates(task, decoder, told, np.random.default_rng(run.seed), stopped=lambda: run.stopped):
        best = _offer(run, decoder, candidate, best)


def _offer(run: Run, decoder: Decoder, candidate: Candidate, best: float) -> float:
    if candidate.value < best * (1 - 1e-12) and not (run.stopped and run.plan is not None):
        run.offer(decoder.plan(candidate), "gnn")
    return min(best, candidate.value)
