"""What a policy of one's own may be: an object that says who comes first, or who starts where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .book import Book, Stint
from .job import Request

Proposal = tuple[str, int, Mapping[int, tuple[int, ...]] | None]
"""A job, how many workers, and its GPUs by number of the node; where it goes is left to others if that is `None`."""
AHEAD = 64
"""Of the jobs that wait, so many are shown to a policy, the first by the order of the heuristic."""


class View:
    """What a policy sees, to be read and not to be changed.

    Attributes:
        now: seconds of the user's clock.
        fleet: the nodes, m of them.
        waiting: the first jobs that wait, in the order of the heuristic.
        running: the jobs that run, by name; a copy.
        free: GPUs of each node that nobody holds, 0 where it is down, int64 (m,); a copy.
        up: which nodes are up, (m,).
    """

    def __init__(self, book: Book, first: Sequence[str], free: np.ndarray) -> None:
        self.now, self.fleet = book.now, book.fleet
        self.waiting: tuple[Request, ...] = tuple(book.waiting[name] for name in first)
        self._book, self._free = book, free

    @property
    def running(self) -> Mapping[str, Stint]:
        """The jobs that run, by name; made when it is asked for."""
        return dict(self._book.running)

    @property
    def free(self) -> np.ndarray:
        """GPUs of each node that nobody holds, int64 (m,); made when it is asked for."""
        return self._free.copy()

    @property
    def up(self) -> tuple[bool, ...]:
        """Which nodes are up, (m,)."""
        return tuple(self._book.up)

    @property
    def options(self) -> list[tuple[Request, int]]:
        """Each waiting job that is shown with each number of workers it may have."""
        return [(request, degree) for request in self.waiting for degree in request.job.workers]


@runtime_checkable
class Ranks(Protocol):
    """Says who comes first."""

    def rank(self, view: View) -> Iterable[float]:
        """Return a number for each of ``view.options``, the least is first, infinite if it is not to start now.

        Whoever fits starts, in that order, and the heuristic's order decides about the rest. A tuple of numbers (n,).
        """
        ...


@runtime_checkable
class Proposes(Protocol):
    """Says who starts."""

    def propose(self, view: View) -> Iterable[Proposal]:
        """Return who starts, in order; each is verified by itself."""
        ...


_MOST = 100_000
"""Proposals that are looked at: more than any cluster starts at a time."""


def _sound(job: str, degree: int, nodes: Mapping[int, Sequence[int]] | None) -> Proposal:
    """Return a proposal that has the types it should have; what it says is for the verifier."""
    if not isinstance(job, str):
        raise TypeError(f"{job!r} is no name of a job")
    where = None if nodes is None else {int(node): tuple(int(gpu) for gpu in gpus) for node, gpus in nodes.items()}
    return job, int(degree), where


def proposals(policy: Any, view: View) -> tuple[list[Proposal], list[tuple[str, float]]]:
    """Return who is to start by a policy, and its scores in words.

    Raises:
        ValueError: if it does not give a number for each option, or gives none that is one.
    """
    if not isinstance(policy, Ranks):
        chosen = [_sound(*proposal) for proposal in islice(policy.propose(view), _MOST)]
        return chosen, [(f"{job} on {degree}", float(i)) for i, (job, degree, _) in enumerate(chosen)]
    options = view.options
    scores = np.asarray(list(islice(policy.rank(view), len(options) + 1)), dtype=float)
    if scores.shape != (len(options),):
        raise ValueError(f"{scores.shape} scores where there are {len(options)} options")
    if np.isnan(scores).any():
        raise ValueError(f"score {int(np.argmax(np.isnan(scores)))} is NaN")
    order = [int(i) for i in np.argsort(scores, kind="stable") if scores[i] < np.inf]
    ranked: list[Proposal] = [(options[i][0].name, options[i][1], None) for i in order]
    return ranked, [(f"{options[i][0].name} on {options[i][1]}", float(scores[i])) for i in order]
