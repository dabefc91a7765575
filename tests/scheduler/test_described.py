"""A log that a command goes on with, with the settings that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.cli.settings import with_settings
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler
from gangplan.scheduler.described import cluster_of, reopened


def test_a_command_changes_the_settings_of_its_log(tmp_path: Path) -> None:
    """What runs stays; a part of a quota is changed alone; what does not change live, or loses jobs, is refused."""
    path = tmp_path / "log.jsonl"
    begun = ["queues.a=0.5", "queues.b=0.5", "least_run=60"]
    scheduler = Scheduler(Fleet.regular(1, 1, 8), log=path, **with_settings({}, begun))
    scheduler.submit(GangJob("x", "any", (8,)), 600.0, now=0.0, queue="a")
    scheduler.decide(60.0)
    state = scheduler.snapshot()
    del scheduler
    assert reopened(path, lambda known: with_settings(known, begun)).snapshot() == state
    scheduler = reopened(path, lambda known: with_settings(known, ["queue.a.share=.25", "price=60"]))
    sharing = scheduler._state.sharing
    assert scheduler.running == ("x",) and scheduler._state.settings.price == 60.0
    assert (sharing.queues["a"].share, sharing.queues["b"].share, sharing.least_run) == (0.25, 0.5, 60)
    state = scheduler.snapshot()
    del scheduler
    assert Scheduler.open(path).snapshot() == state
    for texts, words in (["order=1"], "set: order is not as in the log"), (['queues={"b": 1}'], "of it are x"):
        with pytest.raises(InstanceError, match=words):
            reopened(path, lambda known, texts=texts: with_settings(known, texts))
    assert reopened(path, {"patience": 9.0}).running == ("x",)


def test_a_cluster_that_lacks_a_field_or_has_text_in_it() -> None:
    """The field is named, not an argument of a call in Python."""
    for data, words in (
        ({"nodes": 2}, "cluster.racks: is missing"),
        ({"racks": 1, "nodes": 2, "cpu": [8, 16]}, r"cluster.cpu: \[8, 16\] is not a number"),
        ({"racks": 1, "nodes": 2, "link": "fast"}, "cluster.link: 'fast' is not a number"),
    ):
        with pytest.raises(InstanceError, match=words):
            cluster_of(data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("99999999x99999", "cluster.nodes: 99999999 are more than 100000"),
        ("5x99999x8", "cluster.nodes: 499995 are more than 100000"),
        ("1x99999999", r"cluster.gpus: 99999999 is more than 10000000 devices"),
        ("1" * 30 + "x8", "cluster: .* is too large"),
    ],
)
def test_a_cluster_in_words_that_is_too_large(text: str, words: str) -> None:
    """What is too large is not called badly written: the most is named."""
    with pytest.raises(InstanceError, match=words):
        cluster_of(text)
