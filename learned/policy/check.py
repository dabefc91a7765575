"""The contract of a learned policy, as a test anyone can run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray

SEEDS = range(12)
TOLERANCE = 1e-4
"""By how much scores may change, of their spread, if things are named otherwise: sums have another order then."""


class LearnedPolicy(Protocol):
    """What decides one thing at a time among A candidates, A being any number."""

    def score(self, observation: Any) -> FloatArray:
        """Return a score a candidate, (A,); the largest is the policy's choice, minus infinity is not allowed."""

    def choose(self, observation: Any, seed: int | None = None) -> int:
        """Return the place of the best candidate, or of one drawn by that seed."""

    def save(self, path: Path) -> None:
        """Write the weights; the class method ``load(path)`` returns the policy again."""


@dataclass(frozen=True, slots=True)
class Case:
    """One decision on which a policy is checked.

    Attributes:
        name: for messages.
        observation: what the policy gets.
        allowed: which of the A candidates are allowed, bool (A,).
        renamed: the same decision with its ops, devices, nodes or jobs in another order, and for each candidate its
            place among the candidates then, int (A,).
        larger: whether this is larger than anything the policy was trained on.
    """

    name: str
    observation: Any
    allowed: BoolArray
    renamed: Sequence[tuple[Any, NDArray[np.integer[Any]]]] = field(default=())
    larger: bool = False


def check_policy(policy: Any, cases: Sequence[Case], *, load: Callable[[Path], Any] | None = None) -> None:
    """Check a policy on some decisions.

    Checked: scores are one a candidate, finite where the candidate is allowed and minus infinity where not, and what
    is chosen is allowed and, without a seed, the best; the same decision and seed have the same answer, also after
    other decisions; names and order of the parts make no difference; a policy saved and loaded is the same policy; it
    runs on decisions larger than it was trained on.

    Args:
        policy: what to check, see `LearnedPolicy`.
        cases: decisions; at least one has renamings, and at least one is larger.
        load: returns a policy from what `save` wrote, by default the class method ``load``.

    Raises:
        AssertionError: saying what is wrong and on which case.
    """
    assert any(case.renamed for case in cases), "no case has renamings: nothing would be known of them"
    assert any(case.larger for case in cases), "no case is larger: nothing would be known of other sizes"
    first = [_answer(policy, case) for case in cases]
    for case, scores in zip(cases, first, strict=True):
        _check_scores(scores, case)
        _check_choices(policy, scores, case)
    for case, scores in zip(reversed(cases), reversed(first), strict=True):
        assert np.array_equal(_answer(policy, case), scores), f"{case.name}: scored again, the scores are others"
        for i, (observation, order) in enumerate(case.renamed):
            _check_renamed(_score(policy, observation, f"{case.name}, renaming {i}"), order, scores, case, i)
    _check_loaded(policy, cases, first, load)


def _answer(policy: Any, case: Case) -> FloatArray:
    return _score(policy, case.observation, case.name + (", which is larger" if case.larger else ""))


def _score(policy: Any, observation: Any, where: str) -> FloatArray:
    try:
        return np.asarray(policy.score(observation), dtype=np.float64)
    except Exception as error:
        raise AssertionError(f"{where}: scoring fails: {error!r}") from error


def _check_scores(scores: FloatArray, case: Case) -> None:
    shape = np.shape(case.allowed)
    assert scores.shape == shape, f"{case.name}: scores have shape {scores.shape}, the candidates {shape}"
    assert not np.isnan(scores).any(), f"{case.name}: score {int(np.argmax(np.isnan(scores)))} is not a number"
    wrong = np.isfinite(scores) != case.allowed
    if wrong.any():
        i = int(np.argmax(wrong))
        words = "allowed" if case.allowed[i] else "not allowed"
        raise AssertionError(f"{case.name}: candidate {i} is {words}, but its score is {scores[i]}")


def _check_choices(policy: Any, scores: FloatArray, case: Case) -> None:
    best = int(policy.choose(case.observation))
    assert case.allowed[best], f"{case.name}: chooses {best}, which is not allowed"
    assert scores[best] == scores.max(), f"{case.name}: chooses {best} without a seed, which has not the best score"
    drawn = [int(policy.choose(case.observation, seed)) for seed in SEEDS]
    for seed, i in zip(SEEDS, drawn, strict=True):
        assert 0 <= i < len(scores) and case.allowed[i], f"{case.name}: seed {seed} chooses {i}, which is not allowed"
    again = [int(policy.choose(case.observation, seed)) for seed in SEEDS]
    assert drawn == again, f"{case.name}: the same seeds choose {drawn}, then {again}"


def _check_renamed(found: FloatArray, order: Any, scores: FloatArray, case: Case, i: int) -> None:
    where = f"{case.name}, renaming {i}"
    assert found.shape == scores.shape, f"{where}: there are {found.shape} scores instead of {scores.shape}"
    back, ok = found[np.asarray(order)], case.allowed
    assert np.array_equal(np.isfinite(back), ok), f"{where}: other candidates are allowed"
    spread = np.ptp(scores[ok]) + np.abs(scores[ok]).mean() if ok.any() else 0.0
    apart = np.abs(back[ok] - scores[ok])
    if (apart > TOLERANCE * spread).any():
        j = int(np.flatnonzero(ok)[np.argmax(apart)])
        raise AssertionError(f"{where}: the score of candidate {j} becomes {back[j]} instead of {scores[j]}")


def _check_loaded(
    policy: Any, cases: Sequence[Case], first: list[FloatArray], load: Callable[[Path], Any] | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.safetensors"
        policy.save(path)
        loaded = (load or type(policy).load)(path)
    for case, scores in zip(cases, first, strict=True):
        assert np.array_equal(_answer(loaded, case), scores), f"{case.name}: saved and loaded, the scores are others"
        drawn = [[int(p.choose(case.observation, seed)) for seed in SEEDS] for p in (policy, loaded)]
        assert drawn[0] == drawn[1], f"{case.name}: saved and loaded, the same seeds choose otherwise"
