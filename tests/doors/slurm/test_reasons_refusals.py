"""What Slurm does not start keeps no GPUs, its users read why, and it is tried again more and more seldom."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from math import inf
from typing import Any

import pytest

from gangplan.doors.slurm.reasons import LONGEST, REFUSED, TRIES, SlurmRefusal, noted

from .conftest import Played


@pytest.mark.parametrize(
    "reason",
    [
        *("PartitionNodeLimit", "PartitionTimeLimit", "PartitionDown", "PartitionInactive", "BadConstraints"),
        *("QOSMaxGRESPerUser", "QOSGrpGRES", "AssocGrpGRES", "AssocMaxJobsLimit", "Licenses", "InvalidAccount"),
        *("Reservation", "ReqNodeNotAvail", "Dependency", "DependencyNeverSatisfied", "AReasonToCome"),
    ],
)
def test_whoever_is_refused_gives_back_its_nodes(played: Played, reason: str) -> None:
    """Whatever Slurm's reason, others have the nodes two rounds later, and the comment has reason and user's words."""
    first = played.submit(1, nodes=8, comment="gangplan my words")
    second = played.submit(2, nodes=8)
    played.reasons["1"] = reason
    played.round()
    assert first["priority"] and not second["priority"]
    played.round()
    assert second["job_state"] == "RUNNING" and first["priority"] == 0 and first["required_nodes"] == ""
    assert first["comment"].startswith(f"gangplan my words [gangplan: Slurm says {reason}, tried 1 time; again at ")


def test_tries_are_more_and_more_seldom_and_end(played: Played) -> None:
    """Waits double up to ten minutes; after six tries a job for which nothing passes by itself is left held."""
    row, tries = played.submit(1), list[float]()
    played.reasons["1"] = "PartitionNodeLimit"
    for _ in range(300):
        tries += [played.now] * bool(played.round(10.0))
    waits = [round(late - soon) for soon, late in pairwise(tries)]
    assert len(tries) == TRIES
    assert all(wait == pytest.approx(min(LONGEST, REFUSED * 2**i), abs=21) for i, wait in enumerate(waits))
    assert row["comment"].endswith("[gangplan: Slurm says PartitionNodeLimit, tried 6 times; held]")
    del played.reasons["1"]
    row |= {"priority": 9, "state_reason": "Priority"}  # its user releases it
    played.round()
    played.round()
    assert row["job_state"] == "RUNNING"
    played.round()
    assert row["comment"] == "gangplan"


def test_what_passes_by_itself_is_tried_for_ever(played: Played) -> None:
    """A limit that others of the user have to leave is tried every ten minutes, and when one of them ends."""
    other, row = played.submit(1), played.submit(2)
    played.round()
    assert other["job_state"] == row["job_state"] == "RUNNING"
    late = [played.submit(3 + i) for i in range(2)]
    played.reasons |= {"3": "QOSMaxJobsPerUserLimit", "4": "QOSMaxJobsPerUserLimit"}
    for _ in range(40):
        played.round(60.0)
    assert "tried" in late[0]["comment"] and "held" not in late[0]["comment"]
    for row in late:
        row["priority"], row["state_reason"] = 0, "JobHeldUser"
    played.round()
    played.round()
    played.reasons.clear()
    played.set(other, "COMPLETED")
    played.round()
    assert [row["job_state"] for row in late].count("RUNNING") == 1  # one ended, one is tried


def test_a_restart_goes_on_with_the_comment(played: Played) -> None:
    """Tries and times are those of the comment; a job that is changed is tried at once."""
    row = played.submit(1)
    played.reasons["1"] = "PartitionTimeLimit"
    played.round()
    played.round()
    played.restart()
    assert played.round() == [] and played.round(REFUSED + 2) != []
    played.round()
    assert "tried 2 times" in row["comment"]
    played.restart()
    played.reasons.clear()
    assert played.round() == []
    row["time_limit"] = 1
    assert played.round() == ["1 on n0"]


def test_a_users_hold_after_the_release_is_kept(played: Played) -> None:
    """It gives its nodes to others, and is placed when its user releases it."""
    row, other = played.submit(1, nodes=8), played.submit(2, nodes=8)
    played.reasons["1"] = "Resources"
    played.round()
    row |= {"priority": 0, "state_reason": "JobHeldUser"}
    played.round()
    assert other["job_state"] == "RUNNING" and "JobHeldUser, tried 1 time; held" in row["comment"]
    played.set(other, "COMPLETED")
    for _ in range(9):
        assert played.round(100.0) == []
    row |= {"priority": 9, "state_reason": "None"}
    played.reasons.clear()
    played.round()
    assert played.round() == ["1 on n0,n1,n2,n3,n4,n5,n6,n7"]


@pytest.mark.parametrize(
    "since",
    [
        {"required_nodes": ""},  # all that was told
        {"boot": 1.0},  # the release alone: the nodes were saved before
        {"restart_cnt": 1},  # it was released, and Slurm requeued it
    ],
)
def test_a_release_that_slurm_forgot_is_told_again(played: Played, since: dict[str, Any]) -> None:
    """Killed before it saved the release, Slurm says that its user holds the job; it is released again, and runs."""
    row = played.submit(1, nodes=8, restart_cnt=0)
    played.reasons["1"] = "Resources"
    assert played.round()
    row |= {"priority": 0, "state_reason": "JobHeldUser"} | since
    boot = datetime.fromtimestamp(played.now + row.pop("boot", -9.0)).isoformat(timespec="seconds")
    played.told["scontrol show config"] = f"BOOT_TIME               = {boot}\n"
    played.reasons.clear()
    assert played.round() == ["1 on n0,n1,n2,n3,n4,n5,n6,n7"]
    assert row["job_state"] == "RUNNING" and row["comment"] == "gangplan"


@pytest.mark.parametrize("reason", ["JobHeldAdmin", "JobHoldMaxRequeue", "BadConstraints", "ReservationDeleted"])
def test_who_else_holds_a_job_is_heeded(played: Played, reason: str) -> None:
    """A job that an administrator or Slurm itself holds is neither placed nor released."""
    row = played.submit(1, state_reason=reason)
    assert played.round() == [] and row["priority"] == 0 and row["state_reason"] == reason


def test_who_is_late_is_placed_anew_at_once_first(played: Played) -> None:
    """A job that Slurm did not start in a minute, since others were faster, waits only from its second time on."""
    row = played.submit(1)
    played.reasons["1"] = "Priority"
    assert played.round() and not played.round(59.0)
    played.round(2.0)
    assert "Priority, tried 1 time" in row["comment"] and played.round()
    played.round(61.0)
    assert not played.round()


def test_a_dependent_job_starts_with_its_parents_end(played: Played) -> None:
    """In the round in which the parent has ended, though Slurm has not noted it yet."""
    parent = played.submit(1)
    child = played.submit(2, dependency="afterok:1(unfulfilled)")
    played.round()
    assert parent["job_state"] == "RUNNING" and played.round() == []
    played.set(parent, "COMPLETED")
    assert played.round() == ["2 on n0"] and child["job_state"] == "RUNNING"


def test_another_partition_is_taken_as_soon_as_it_has_room(played: Played) -> None:
    """Of `-p left,right` the one with room is taken at first, and later too; all nodes are of one of them."""
    for i, node in enumerate(played.told["sinfo --json"]["nodes"]):
        node["partitions"] = ["right" if i > 3 else "left"]
    played.restart()
    full = [played.submit(1 + i, nodes=4, partition=name) for i, name in enumerate(("left", "right"))]
    played.round()
    wide, narrow = (played.submit(3 + i, nodes=3, partition="left,right") for i in range(2))
    assert played.round() == []
    played.set(full[1], "COMPLETED")
    assert played.round() == ["3 on n4,n5,n6"]
    played.set(full[0], "COMPLETED")
    assert played.round() == ["4 on n0,n1,n2"]
    assert wide["job_state"] == narrow["job_state"] == "RUNNING"


def test_a_range_gets_what_was_decided_and_is_a_range_again(played: Played) -> None:
    """Slurm is told the number of nodes; if it does not start the job, the range is as its user asked."""
    row = played.submit(1, nodes=1, max_nodes=4)
    played.reasons["1"] = "Licenses"
    assert played.round() == ["1 on n0,n1,n2,n3"]
    assert (row["node_count"], row["max_nodes"]) == (4, 4)
    played.round()
    assert (row["node_count"], row["max_nodes"]) == (1, 4)


def test_what_is_not_placed_says_why(played: Played) -> None:
    """A partition that is down, more GPUs than any node has, and what only Slurm understands stand in the comment."""
    key = "scontrol show partition --oneliner"
    played.told[key] += "PartitionName=off Nodes=n[0-7] State=DOWN PriorityTier=1\n"
    off, large = played.submit(1, partition="off"), played.submit(2, tres_per_node="gres:gpu:9")
    named = played.submit(3, required_nodes="n[2-3]", tres_per_node="gres:gpu:1")
    played.round()
    assert off["comment"] == "gangplan [gangplan: partition off is not up]" and off["priority"] == 0
    assert large["comment"].startswith("gangplan [gangplan: ") and large["priority"] == 0
    assert named["comment"] == "gangplan [gangplan: is left to Slurm, for its required_nodes n(2-3)]"
    assert named["job_state"] == "RUNNING"


def test_a_comment_is_read_and_written() -> None:
    """What is written is read again; a user's own words stay as they are, brackets too."""
    refusal = SlurmRefusal("scontrol: no, [not]; so", 3, 1.8e9)
    comment = noted("gangplan [a] b", str(refusal))
    assert SlurmRefusal.read(comment) == SlurmRefusal("scontrol: no, (not); so", 3, 1.8e9)
    assert noted(comment, "") == "gangplan [a] b" and noted(noted(comment, "x"), "") == "gangplan [a] b"
    assert SlurmRefusal.read("gangplan [gangplan: Slurm says X, tried 6 times; held]") == SlurmRefusal("X", 6, inf)
    for text in ("", "[gangplan: x]", "[gangplan: Slurm says X, tried 1 time; again at noon]"):
        assert SlurmRefusal.read(text) is None


def test_of_several_partitions_slurm_may_name_one_that_is_full(played: Played) -> None:
    """Slurm says for a moment that nodes in the other are not there: the job is not taken back, and starts."""
    for i, node in enumerate(played.told["sinfo --json"]["nodes"]):
        node["partitions"] = ["right" if i > 3 else "left"]
    played.restart()
    row = played.submit(1, nodes=3, partition="left,right")
    played.reasons["1"] = "ReqNodeNotAvail"
    assert played.round()
    where = row["required_nodes"]
    played.round()
    assert row["priority"] and row["required_nodes"] == where
    row["state_reason"] = "None"
    played.round()
    assert row["job_state"] == "RUNNING" and "tried" not in row["comment"]


def test_the_last_task_of_an_array_keeps_to_its_limit(played: Played) -> None:
    """It has a number of its own before it starts, and waits still until one of the two that may run has ended."""
    array = {"array_job_id": 1, "array_max_tasks": 2}
    rows = [played.submit(i, **array | {"array_task_id": i, "array_max_tasks": 2 * (i == 1)}) for i in (1, 2, 3)]
    for row in rows[1:]:
        played.set(row, "RUNNING", nodes=f"n{row['job_id']}", gres_detail=["gpu:4"], priority=9)
    assert played.round() == []
    played.set(rows[1], "COMPLETED")
    assert played.round() == ["1_1 on n0"]
