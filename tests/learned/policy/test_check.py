"""The contract of a learned policy passes a good one, and finds each defect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.learned import Case, check_policy


class Fullest:
    """A third party's policy: the node with the least room that is left, weighed against the mean of all nodes."""

    def __init__(self, weights: Any = (1.0, 0.5)) -> None:
        self.weights = np.asarray(weights, dtype=float)

    def score(self, observation: Any) -> Any:
        """Score the nodes that have room for the gang."""
        free, asked = observation
        score = -(self.weights @ np.stack([free / free.mean(), (free - asked) ** 2 / free.max() ** 2]))
        return np.where(free >= asked, score, -np.inf)

    def choose(self, observation: Any, seed: int | None = None) -> int:
        """Draw by adding Gumbel noise."""
        score = self.score(observation)
        if seed is None:
            return int(np.argmax(score))
        return int(np.argmax(score + np.random.default_rng(seed).gumbel(size=len(score))))

    def save(self, path: Path) -> None:
        """Write the two weights."""
        path.write_text(" ".join(map(repr, self.weights.tolist())))

    @classmethod
    def load(cls, path: Path) -> Fullest:
        """Read them."""
        return cls([float(x) for x in path.read_text().split()])


def case(nodes: int, seed: int, larger: bool = False) -> Case:
    """Return a gang that some nodes have room for."""
    rng = np.random.default_rng(seed)
    free, asked = rng.integers(0, 9, nodes).astype(float), 3.0
    free[:2] = 8.0, 1.0
    renamed = []
    for _ in range(2):
        order = rng.permutation(nodes)  # node i is now node order[i]
        moved = np.empty(nodes)
        moved[order] = free
        renamed.append(((moved, asked), order))
    return Case(f"{nodes} nodes", (free, asked), free >= asked, renamed, larger)


CASES = [case(4, 0), case(7, 1), case(200, 2, larger=True)]


class Unsteady(Fullest):
    """Draws from a generator of its own."""

    rng = np.random.default_rng(0)

    def choose(self, observation: Any, seed: int | None = None) -> int:
        """Ignore the seed."""
        return super().choose(observation, None if seed is None else int(self.rng.integers(1 << 30)))


class Remembers(Fullest):
    """Scores by how often it was asked."""

    asked = 0

    def score(self, observation: Any) -> Any:
        """Drift."""
        self.asked += 1
        return super().score(observation) * (1 + self.asked / 1000)


class Bold(Fullest):
    """Scores nodes without room as well."""

    def score(self, observation: Any) -> Any:
        """Ignore the mask."""
        return super().score((observation[0], 0.0))


class Reckless(Fullest):
    """Draws among all nodes."""

    def choose(self, observation: Any, seed: int | None = None) -> int:
        """Ignore the mask when drawing."""
        if seed is None:
            return super().choose(observation)
        return int(np.random.default_rng(seed).integers(len(observation[0])))


class Timid(Fullest):
    """Never uses the node with most room."""

    def score(self, observation: Any) -> Any:
        """Forbid what is allowed."""
        score = super().score(observation)
        score[np.argmax(observation[0])] = -np.inf
        return score


class Ordered(Fullest):
    """Likes what comes first."""

    def score(self, observation: Any) -> Any:
        """Look at places."""
        return super().score(observation) - 0.01 * np.arange(len(observation[0]))


class Forgetful(Fullest):
    """Rounds its weights when it is saved."""

    def save(self, path: Path) -> None:
        """Lose the second weight."""
        path.write_text(f"{self.weights[0]} 0.0")


class Fixed(Fullest):
    """Knows nodes up to sixteen."""

    def score(self, observation: Any) -> Any:
        """Pad to sixteen."""
        padded = np.zeros(16)
        padded[: len(observation[0])] = observation[0]
        return super().score((padded, observation[1]))[: len(observation[0])]


class Lost(Fullest):
    """Divides zero by zero."""

    def score(self, observation: Any) -> Any:
        """Return what is not a number where there is no room."""
        score = super().score(observation)
        return np.where(np.isfinite(score), score, np.nan)


class Second(Fullest):
    """Takes the second best."""

    def choose(self, observation: Any, seed: int | None = None) -> int:
        """Sort, and take the wrong one."""
        if seed is None:
            return int(np.argsort(self.score(observation))[-2])
        return super().choose(observation, seed)


class Flat(Fullest):
    """Returns a score too few."""

    def score(self, observation: Any) -> Any:
        """Drop the last."""
        return super().score(observation)[:-1]


def test_a_good_policy_passes() -> None:
    """A policy without a defect passes, loaded by its own method or by one that is given."""
    check_policy(Fullest(), CASES)
    check_policy(Fullest((0.3, 2.0)), CASES, load=Fullest.load)


@pytest.mark.parametrize(
    ("defect", "words"),
    [
        (Unsteady, "the same seeds choose"),
        (Remembers, "scored again, the scores are others"),
        (Bold, "is not allowed, but its score is"),
        (Reckless, "chooses .* which is not allowed"),
        (Timid, "is allowed, but its score is -inf"),
        (Ordered, "renaming 0: the score of candidate"),
        (Forgetful, "saved and loaded, the scores are others"),
        (Fixed, "200 nodes, which is larger: scoring fails"),
        (Lost, "is not a number"),
        (Second, "has not the best score"),
        (Flat, "scores have shape"),
    ],
)
def test_each_defect_is_found(defect: Any, words: str) -> None:
    """A policy with one defect fails, and the message says which."""
    with pytest.raises(AssertionError, match=words):
        check_policy(defect(), CASES)


def test_empty_cases_prove_nothing() -> None:
    """Cases without renamings, or none larger than trained on, are refused."""
    with pytest.raises(AssertionError, match="no case has renamings"):
        check_policy(Fullest(), [replace(x, renamed=()) for x in CASES])
    with pytest.raises(AssertionError, match="no case is larger"):
        check_policy(Fullest(), CASES[:2])
