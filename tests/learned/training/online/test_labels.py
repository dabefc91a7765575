"""Labels are regrets, the same for the same seed."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from joblib import parallel_config

from gangplan.learned.graph.compiled import CompiledNetwork, score
from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.settings import GnnSettings
from gangplan.learned.training.online import labels
from gangplan.learned.training.online.labels import FEWEST, DecisionLabel, label_episode, make_labels

from ...conftest import drawn, short

SETTINGS = GnnSettings(width=8, rounds=2, tries=4, futures=3, ahead=6)


def labelled(number: int, seed: int, spread: float = 0.0) -> list[DecisionLabel]:
    """Return the labels of a short episode."""
    return [*label_episode(short(number, 150), SETTINGS, drawn(0, spread).net, seed)]


def same(first: list[DecisionLabel], second: list[DecisionLabel]) -> bool:
    """Return whether labels are equal."""
    pairs = zip(first, second, strict=False)
    equal = all(np.array_equal(a.tried, b.tried) and np.array_equal(a.regret, b.regret) for a, b in pairs)
    return equal and len(first) == len(second)


@pytest.mark.parametrize("number", [0, 3, 5])
def test_labels_are_regrets(number: int) -> None:
    """Each decision has a best candidate and worse ones, the student's choice among them."""
    labels = labelled(number, 0)
    assert len(labels) > 5 and max(x.regret.max() for x in labels) > 0.1
    for x in labels:
        k = x.graph.kind[1]
        assert 1 <= len(x.tried) == len(x.regret) <= FEWEST + 1
        assert (np.diff(x.tried) > 0).all() and x.tried[0] >= 0 and x.tried[-1] < k
        assert x.regret.min() == 0 and np.isfinite(x.regret).all()
        assert np.argmax(x.graph.x[:k, BY_RULE]) in x.tried
        assert len(x.graph.x) == x.graph.kind[-1] and len(x.graph.source) == x.graph.relation[-1]
        assert score(x.graph, drawn(1).net).shape == (k, 1)


def test_the_same_seed_has_the_same_labels() -> None:
    """Of one network; another seed has others."""
    first = labelled(0, 0, 0.3)
    assert first and same(first, labelled(0, 0, 0.3))
    assert not same(first, labelled(0, 1, 0.3))


def test_exact_labels_are_regrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few candidates, with the best at 0; the same again, and none where too many nodes are needed."""
    monkeypatch.setattr(labels, "SOLVED", 1)
    settings, net = replace(SETTINGS, exact=1.0), drawn(0, 0.0).net

    def first() -> list[DecisionLabel]:
        return [*islice(label_episode(short(0, 150), settings, net, 0), 3)]

    made = first()
    assert same(made, first()) and not same(made, labelled(0, 0)[:3])
    assert all(x.regret.min() == 0 and len(x.tried) <= labels.FEWEST + 1 for x in made)
    assert all(x.exact for x in made)
    monkeypatch.setattr(labels, "MOST", 0)
    assert not first()


def test_arrays_of_another_process_may_be_read_only() -> None:
    """Joblib hands over networks that nobody may write to, and the labels are the same."""
    given, net = short(0, 150), drawn(0, 0.0).net
    arrays = [x.copy() for x in net.arrays().values()]
    for x in arrays:
        x.setflags(write=False)
    assert same([*label_episode(given, SETTINGS, CompiledNetwork(*arrays), 0)], labelled(0, 0))


def test_many_labels_come_in_the_order_of_episodes() -> None:
    """As many as asked for, the first of the same seed the same; another seed, or first episode, has others."""
    net = drawn(0, 0.0).net
    with parallel_config(backend="sequential"):
        few, many = (make_labels(SETTINGS, net, 0, count, draw=short) for count in (10, 200))
        others = (
            make_labels(SETTINGS, net, 1, 10, draw=short),
            make_labels(SETTINGS, net, 0, 10, first=50_000, draw=short),
        )
    assert (len(few), len(many)) == (10, 200)
    assert same(few, many[:10])
    assert not any(same(few, x) for x in others)
