"""Jobs that wait say why in their comments, once as long as it is so, and in the dry run."""

from __future__ import annotations

import pytest

from gangplan.cli import online as command
from gangplan.doors.core import Core
from gangplan.doors.slurm import rounds
from gangplan.doors.slurm.view import SlurmView
from gangplan.scheduler import Quota, Scheduler, Sharing

from .conftest import Played

SHARING = Sharing(queues={"nlp": Quota(0.25, 0.25), "cv": Quota(0.75)})


def test_comments_say_why(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """No room, a dependency and a time to begin are told in one order each, beside users' words, until it runs."""
    first = played.submit(1, nodes=8)
    played.round()
    wide, narrow = played.submit(2, nodes=8, comment="gangplan my words"), played.submit(3)
    child = played.submit(4, dependency="afterok:1(unfulfilled)")
    late = played.submit(5, eligible_time=int(played.now) + 1000)
    played.round()
    assert wide["comment"] == "gangplan my words [gangplan: waits: no room, 0 before it]"
    assert narrow["comment"] == "gangplan [gangplan: waits: no room, 1 before it]"
    assert child["comment"] == "gangplan [gangplan: waits: dependency afterok:1(unfulfilled)]"
    assert late["comment"] == "gangplan [gangplan: waits: its time to begin has not come]"
    orders, order = list[tuple[str, ...]](), rounds.run
    monkeypatch.setattr(rounds, "run", lambda *words: (orders.append(words), order(*words))[1])
    for _ in range(3):
        played.round()
    played.submit(6)
    played.round()
    assert [x[2] for x in orders] == ["JobId=6"]
    played.set(first, "COMPLETED")
    played.round()
    played.round()
    assert wide["job_state"] == "RUNNING" and wide["comment"] == "gangplan my words"
    assert [x[1] for x in orders if x[2] in ("JobId=2", "2")] == ["update", "release"]


def test_no_more_than_some_a_round(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs beyond the most of a round are told in the next ones."""
    monkeypatch.setattr(rounds, "TOLD", 2)
    played.submit(1, nodes=8)
    for number in range(2, 7):
        played.submit(number)
    told = []
    for _ in range(4):
        played.round()
        told.append(sum("waits" in row["comment"] for row in played.jobs))
    assert told == [2, 4, 5, 5]


def test_a_queue_and_nodes_that_are_closed_are_named(played: Played) -> None:
    """A share, nodes that are drained and nodes that are too few stand in the comment."""
    played.restart(sharing=SHARING)
    played.submit(1, nodes=2, account="nlp")
    played.round()
    waits = played.submit(2, account="nlp")
    played.round()
    assert waits["comment"] == "gangplan [gangplan: waits: queue nlp has 25.0% of the cluster, at most 25.0%]"
    for node in played.told["sinfo --json"]["nodes"][2:]:
        node["state_flags"] = ["DRAIN"]
    drained = played.submit(3, nodes=3, account="cv")
    played.round()
    assert "waits: nodes are closed to it" in drained["comment"]
    for node in played.told["sinfo --json"]["nodes"][2:]:
        node |= {"state": "down", "state_flags": []}
    played.round()
    assert "they have room for 2 of its 3 workers" in drained["comment"]


def test_too_few_nodes_are_told_in_slurms_words(played: Played) -> None:
    """Nodes of enough room that are too few are said to be that, and no argument of Python is named."""
    row = played.submit(6, nodes=9, tres_per_node="gres:gpu:2")
    played.round()
    assert "they have room for 8 of its 9 workers" in row["comment"] and "await_nodes" not in row["comment"]


def test_who_ran_is_not_said_not_to_have_started(played: Played) -> None:
    """A job that Slurm requeued is placed anew, and that it ran is not denied."""
    row = played.submit(1)
    played.round()
    played.round()
    played.set(row, "PENDING", nodes="", gres_detail=[], state_reason="BeginTime", priority=9)
    played.round()
    assert played.said == ["1: was requeued by Slurm, and is placed anew"]


def test_a_dry_run_counts_what_queues_hold(
    played: Played, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a loop it finds the same queue full, and says so; of who depends on another it says on whom."""
    played.restart(sharing=SHARING)
    played.submit(1, nodes=2, account="nlp")
    played.round()
    played.submit(2, account="nlp")
    played.submit(3, dependency="afterok:1(unfulfilled)", account="cv")
    played.submit(4, account="cv", state_reason="JobHeldAdmin")
    view = SlurmView.read()
    core = Core(Scheduler(view.fleet, sharing=SHARING))
    dry = rounds.SlurmRounds(core, None, played.said.append, memory=False, spread=False)
    dry.round(view)
    monkeypatch.setattr(command, "run", lambda *words: "")
    command._compare(dry, view)
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "queue nlp has 25.0% of the cluster, at most 25.0%" in lines["2"]
    assert "dependency afterok:1" in lines["3"] and "Slurm says JobHeldAdmin" in lines["4"]
