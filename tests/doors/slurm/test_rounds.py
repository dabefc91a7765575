"""The real daemons: jobs are placed, and neither side's restart loses or repeats any."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.slurm_daemons import Daemons
from gangplan.doors.core import Core
from gangplan.doors.slurm import rounds
from gangplan.doors.slurm.client import AwayError
from gangplan.doors.slurm.reasons import clock
from gangplan.doors.slurm.view import SlurmView
from gangplan.instances import InstanceError
from gangplan.scheduler import Scheduler

from .conftest import OURS, Door, Played, nodes_of


@contextmanager
def loop(slurm: Daemons, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command as a user does."""
    words = ["-m", "gangplan", "slurm", "--interval", "0.3", "--log", str(log)]
    with (slurm.folder / "log" / "gangplan").open("wb") as out:
        process = subprocess.Popen([sys.executable, *words], env=slurm.environment, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def completed(slurm: Daemons, names: list[str]) -> bool:
    """Return whether these jobs are done."""
    rows = slurm.jobs()
    return all(rows[name]["job_state"] == "COMPLETED" for name in names)


def decided(log: Path) -> dict[str, set[str]]:
    """Return where a log has jobs start at last, by number: one that waits for the second time is 17~2."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    starts = (x for row in rows if row.get("event") == "decide" for x in row.get("starts", ()))
    return {x["job"].partition("~")[0]: {*x["nodes"]} for x in starts}


def test_twenty_jobs_run_where_they_are_to(slurm: Daemons, tmp_path: Path) -> None:
    """Each runs on the nodes of the log and on as many as it asked for; other users' jobs are left alone."""
    log = tmp_path / "log.jsonl"
    with loop(slurm, log):
        other, held = slurm.submit(1, "--nodes=2", "--gres=gpu:4"), slurm.submit(1, "--hold", "--gres=gpu:1")
        names = [slurm.submit(1, *OURS, f"--nodes={1 + i % 4}", f"--gres=gpu:{2 + 2 * (i % 2)}") for i in range(20)]
        slurm.wait(lambda: completed(slurm, [*names, other]), "end of the jobs")
    rows, where = slurm.jobs(), decided(log)
    for i, name in enumerate(names):
        assert nodes_of(rows[name]) == where[name] and len(where[name]) == 1 + i % 4
        assert rows[name]["restart_cnt"] == 0
    assert rows[held]["job_state"] == "PENDING" and rows[held]["state_reason"] == "JobHeldUser"


def test_a_killed_command_goes_on(slurm: Daemons, tmp_path: Path) -> None:
    """After kill -9 in the midst of it, each job runs once, and the log is whole."""
    log = tmp_path / "log.jsonl"
    names = [slurm.submit(1.5, *OURS, "--nodes=4", "--gres=gpu:4") for _ in range(6)]
    with loop(slurm, log):
        slurm.wait(lambda: any(x["job_state"] == "RUNNING" for x in slurm.jobs().values()), "start")
    slurm.ask("scancel", names.pop())  # while nobody looks
    with loop(slurm, log):
        slurm.wait(lambda: completed(slurm, names), "end of the jobs")
    rows = slurm.jobs()
    assert all(rows[name]["restart_cnt"] == 0 and len(nodes_of(rows[name])) == 4 for name in names)
    assert Scheduler.open(log).idle >= 0


def test_a_killed_controller_comes_back(slurm: Daemons, tmp_path: Path) -> None:
    """While slurmctld is away the command waits, and goes on when it answers again."""
    log = tmp_path / "log.jsonl"
    words = (tmp_path / "end", *OURS, "--nodes=4", "--gres=gpu:4")
    names = [slurm.submit(*words) for _ in range(2)]
    with loop(slurm, log) as process:
        slurm.wait(lambda: all(slurm.jobs()[x]["job_state"] == "RUNNING" for x in names), "start")
        names += [slurm.submit(*words, "--job-name=later") for _ in range(2)]
        kept = ("grep", "-qs", "later", slurm.folder / "state" / "job_state")
        slurm.wait(lambda: subprocess.run(kept, check=False).returncode == 0, "state on disk")  # with who runs
        slurm.kill("slurmctld")
        told = slurm.folder / "log" / "gangplan"
        slurm.wait(lambda: "trying again" in told.read_text(), "word that it is away")
        slurm.start("slurmctld", "-D")
        slurm.wait(slurm.states, "controller")
        (tmp_path / "end").touch()
        slurm.wait(lambda: completed(slurm, names), "end of the jobs")
        assert process.poll() is None
    assert all(slurm.jobs()[name]["restart_cnt"] == 0 for name in names)
    assert "Traceback" not in told.read_text()


def test_a_decision_that_was_not_carried_out_is(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between decision and release, the log's decision is carried out at the next start."""
    name = door.slurm.submit(1, *OURS, "--nodes=2", "--gres=gpu:4")
    with monkeypatch.context() as patched:
        patched.setattr(rounds, "run", lambda *words: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            door.round()
    del door.core.scheduler, door.core
    again = Door(door.slurm, door.log)
    assert again.core.scheduler.running == (name,)
    assert [line.split()[0] for line in again.round()] == [name]
    again.until("COMPLETED", name)


def test_a_node_fails_and_comes_back(door: Door, tmp_path: Path) -> None:
    """Its job is held and placed elsewhere; when the node is back, it is used again."""
    slurm = door.slurm
    name = slurm.submit(tmp_path / "end", *OURS, "--nodes=2", "--gres=gpu:4")
    lost = min(nodes_of(door.until("RUNNING", name)[name]))
    slurm.kill(lost)
    slurm.ask("scontrol", "update", f"NodeName={lost}", "State=DOWN", "Reason=test")
    slurm.wait(lambda: slurm.jobs()[name]["job_state"] == "PENDING", "requeue")
    door.round()
    assert [x for x, up in zip(slurm.nodes, door.core.scheduler._state.up, strict=True) if not up] == [lost]
    assert slurm.jobs()[name]["priority"] == 0 and slurm.jobs()[name]["required_nodes"] == ""
    door.until("RUNNING", name)
    (tmp_path / "end").touch()
    row = door.until("COMPLETED", name)[name]
    assert lost not in nodes_of(row) and row["restart_cnt"] == 1
    slurm.start_node(lost)
    slurm.wait(lambda: slurm.states().count("idle") == 8, "idle nodes")
    wide = slurm.submit(1, *OURS, "--nodes=8", "--gres=gpu:4")
    assert len(nodes_of(door.until("COMPLETED", wide)[wide])) == 8


def test_a_drained_node_gets_no_job(door: Door, tmp_path: Path) -> None:
    """Whoever runs there runs on; nobody starts until it is resumed."""
    slurm = door.slurm
    first = slurm.submit(tmp_path / "end", *OURS, "--nodes=1", "--gres=gpu:1")
    (node,) = nodes_of(door.until("RUNNING", first)[first])
    slurm.ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    names = [slurm.submit(1, *OURS, "--nodes=1", "--gres=gpu:4") for _ in range(9)]
    rows = door.until("COMPLETED", *names)
    (tmp_path / "end").touch()
    door.until("COMPLETED", first)
    assert all(nodes_of(rows[name]) != {node} for name in names)
    slurm.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    slurm.wait(lambda: door.round() is not None and not door.core.scheduler.windows, "resumed node")


def test_cancelled_jobs_are_forgotten(door: Door) -> None:
    """One that runs and one that waits leave, and their place is free."""
    slurm = door.slurm
    runs, waits = (slurm.submit(600, *OURS, "--nodes=8", "--gres=gpu:4") for _ in range(2))
    door.until("RUNNING", runs)
    assert door.core.scheduler.running == (runs,) and door.core.scheduler.waiting == (waits,)
    slurm.ask("scancel", runs, waits)
    slurm.wait(lambda: {slurm.jobs()[x]["job_state"] for x in (runs, waits)} == {"CANCELLED"}, "end")
    door.round()
    assert door.core.scheduler.running == door.core.scheduler.waiting == () and door.core.scheduler.idle == 32


def test_room_of_others_is_theirs(door: Door) -> None:
    """What Slurm gave to others is held by them; who was to be there is placed anew."""
    slurm = door.slurm
    other = slurm.submit(600, "--nodelist=n0,n1,n2", "--nodes=3", "--gres=gpu:3", "--cpus-per-task=2")
    slurm.wait(lambda: slurm.jobs()[other]["job_state"] == "RUNNING", "start of the other")
    wide, narrow = (slurm.submit(1, *OURS, f"--nodes={n}", "--gres=gpu:2") for n in (5, 6))
    door.round()
    assert {name for name in door.core.scheduler.running if "@" in name} == {f"{other}@n{i}" for i in range(3)}
    assert door.core.scheduler.waiting == (narrow,)
    assert nodes_of(door.until("COMPLETED", wide)[wide]) == {"n3", "n4", "n5", "n6", "n7"}
    slurm.ask("scancel", other)
    door.until("COMPLETED", narrow)


def test_who_lost_the_race_is_placed_anew(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that somebody else's kept from its nodes is held again, and starts where there is room."""
    slurm = door.slurm
    name = slurm.submit(1, *OURS, "--nodes=1", "--gres=gpu:4")
    order = rounds.run

    def first(*words: str) -> str:
        if words[1] == "release" and first.other is None:  # type: ignore[attr-defined]
            node = next(iter(decided(door.log)[name]))
            first.other = slurm.submit(600, f"--nodelist={node}", "--gres=gpu:1")  # type: ignore[attr-defined]
            slurm.wait(lambda: slurm.jobs()[first.other]["job_state"] == "RUNNING", "start")  # type: ignore[attr-defined]
        return order(*words)

    first.other = None  # type: ignore[attr-defined]
    monkeypatch.setattr(rounds, "run", first)
    door.round()
    row = door.until("COMPLETED", name)[name]
    assert nodes_of(row).isdisjoint(nodes_of(slurm.jobs()[first.other]))  # type: ignore[attr-defined]
    assert any("placed anew" in line for line in door.said)


def test_arrays_keep_to_their_limit(door: Door) -> None:
    """Tasks of an array are jobs; no more run at a time than it says."""
    slurm = door.slurm
    array = slurm.submit(1, *OURS, "--array=0-4%2", "--gpus=2")
    door.round()
    assert {*door.core.scheduler.running} == {f"{array}_0", f"{array}_1"}
    door.until("COMPLETED", *(f"{array}_{i}" for i in range(5)))


def test_tiers_and_nice_values_say_who_is_first(door: Door, tmp_path: Path) -> None:
    """On a full cluster a partition of a higher tier goes first, then the less nice."""
    slurm = door.slurm
    runs = slurm.submit(tmp_path / "end", *OURS, "--nodes=8", "--gres=gpu:4")
    door.until("RUNNING", runs)
    options = ("--nice=100",), ("--nice=50",), ("--partition=urgent", "--nice=200")
    names = [slurm.submit(1, *OURS, "--nodes=8", "--gres=gpu:4", *more) for more in options]
    door.round()
    (tmp_path / "end").touch()
    rows = door.until("COMPLETED", *names)
    assert [*decided(door.log)] == [runs, *names[::-1]]
    assert sorted(names, key=lambda name: rows[name]["start_time"]) == names[::-1]


def test_an_administrators_hold_is_kept(door: Door) -> None:
    """A job that root holds is not released; without its mark it is not touched."""
    slurm = door.slurm
    held, unmarked = (slurm.submit(1, *OURS, "--gres=gpu:1") for _ in range(2))
    slurm.ask("scontrol", "release", held)
    slurm.ask("scontrol", "update", f"JobId={unmarked}", "Comment=mine")
    slurm.wait(lambda: slurm.jobs()[held]["job_state"] == "COMPLETED", "end")
    held = slurm.submit(1, "--comment=gangplan", "--gres=gpu:1", "--begin=now+100")
    slurm.ask("scontrol", "hold", held)
    assert slurm.jobs()[held]["state_reason"] == "JobHeldAdmin"
    assert door.round() == [] and door.core.scheduler.waiting == ()
    assert slurm.jobs()[unmarked]["priority"] == 0


def test_what_only_slurm_understands_is_left_to_it(door: Door) -> None:
    """A job that names its nodes is released as it is; a job without a hold is held first."""
    slurm = door.slurm
    named, later = (
        slurm.submit(1, *OURS, "--nodelist=n6", "--gres=gpu:1"),
        slurm.submit(1, "--comment=gangplan", "--gres=gpu:1", "--begin=now+2", "--time=1"),
    )
    door.round()
    assert any("left to Slurm" in line for line in door.said)
    assert slurm.jobs()[later]["priority"] == 0
    assert nodes_of(door.until("COMPLETED", named, later)[named]) == {"n6"}


def test_a_refused_order_is_not_repeated_at_once(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Slurm refuses is said, and the job waits a while before it is tried again."""
    name = door.slurm.submit(1, *OURS, "--gres=gpu:1")

    def refuse(*words: str) -> str:
        raise InstanceError("slurm", "scontrol: Requested node configuration is not available")

    monkeypatch.setattr(rounds, "run", refuse)
    assert door.round() == door.round() == [] and len(door.said) == 1
    assert door.core.scheduler.running == door.core.scheduler.waiting == ()
    monkeypatch.undo()
    monkeypatch.setenv("SLURM_CONF", door.slurm.environment["SLURM_CONF"])
    door.rounds._refused.clear()
    door.until("COMPLETED", name)


@pytest.fixture
def partitions(slurm: Daemons) -> Iterator[None]:
    """Have partitions with limits, and of half the nodes."""
    kinds = {"small": "Nodes=ALL MaxNodes=1", "short": "Nodes=ALL MaxTime=1", "off": "Nodes=ALL State=DOWN"}
    kinds |= {"left": "Nodes=n[0-3]", "right": "Nodes=n[4-7]"}
    for name, words in kinds.items():
        slurm.ask("scontrol", "create", f"PartitionName={name}", *words.split())
    yield
    for name in kinds if slurm.rest() else ():
        slurm.ask("scontrol", "delete", f"PartitionName={name}")


@pytest.mark.usefixtures("partitions")
def test_limits_of_partitions_keep_no_gpus(slurm: Daemons, tmp_path: Path) -> None:
    """Three jobs that Slurm starts nowhere keep no idle cluster from a fourth, and say why in their comments."""
    with loop(slurm, tmp_path / "log.jsonl"):
        wide = [slurm.submit(1, *OURS, f"--partition={name}", "--nodes=4", "--gres=gpu:4") for name in ("small",) * 2]
        long = slurm.submit(1, *OURS, "--partition=short", "--nodes=4", "--gres=gpu:4")
        slurm.wait(lambda: all("tried 1 time" in slurm.jobs()[x]["comment"] for x in [*wide, long]), "comments")
        fits = slurm.submit(1, *OURS, "--nodes=8", "--gres=gpu:4")
        slurm.wait(lambda: completed(slurm, [fits]), "end of the job that fits", 30.0)
        rows = slurm.jobs()
        assert all("PartitionNodeLimit" in rows[name]["comment"] for name in wide)
        assert "PartitionTimeLimit" in rows[long]["comment"] and rows[long]["required_nodes"] == ""
        slurm.ask("scontrol", "update", f"JobId={long}", "TimeLimit=1")
        slurm.wait(lambda: completed(slurm, [long]), "end of the job that was mended", 30.0)
    assert slurm.jobs()[long]["comment"] == "gangplan"


@pytest.mark.usefixtures("partitions")
def test_several_partitions_and_ranges(door: Door, tmp_path: Path) -> None:
    """A job of two partitions has all nodes in the one with room; a range has what was decided; others say why."""
    slurm = door.slurm
    full = slurm.submit(tmp_path / "end", *OURS, "--partition=left", "--nodes=4", "--gres=gpu:4")
    door.until("RUNNING", full)
    both = slurm.submit(1, *OURS, "--partition=left,right", "--nodes=2", "--gres=gpu:4")
    some = slurm.submit(1, *OURS, "--nodes=1-6", "--gres=gpu:1")
    off = slurm.submit(1, *OURS, "--partition=off", "--gres=gpu:1")
    rows = door.until("COMPLETED", both, some)
    assert nodes_of(rows[both]) <= {"n4", "n5", "n6", "n7"}
    assert nodes_of(rows[some]) == decided(door.log)[some] and rows[some]["restart_cnt"] == 0
    assert door.slurm.jobs()[off]["comment"] == "gangplan [gangplan: partition off is not up]"
    (tmp_path / "end").touch()


def test_a_dependent_job_starts_as_its_parent_ends(door: Door, tmp_path: Path) -> None:
    """In the round after the end, where Slurm notes a minute later that the dependency is fulfilled."""
    slurm = door.slurm
    parent = slurm.submit(tmp_path / "end", "--time=5")
    child = slurm.submit(1, *OURS, f"--dependency=afterok:{parent}", "--gres=gpu:1")
    slurm.wait(lambda: slurm.jobs()[parent]["job_state"] == "RUNNING", "start of the parent")
    assert door.round() == []
    (tmp_path / "end").touch()
    slurm.wait(lambda: slurm.jobs()[parent]["job_state"] == "COMPLETED", "end of the parent")
    assert slurm.jobs()[child]["dependency"] and [line.split()[0] for line in door.round()] == [child]
    door.until("COMPLETED", child)


def test_a_users_hold_after_the_release_is_kept(door: Door) -> None:
    """A job that its user holds before it starts gives back its nodes, until the user releases it."""
    slurm = door.slurm
    other = slurm.submit(600, "--nodes=8", "--gres=gpu:4")
    name = slurm.submit(1, *OURS, "--nodes=8", "--gres=gpu:4")
    early = SlurmView.read()  # in which the other waits or runs not yet
    slurm.wait(lambda: slurm.jobs()[other]["job_state"] == "RUNNING", "start of the other")
    while not any(line.startswith(f"{name} on") for line in door.rounds.round(early)):
        early = SlurmView.read()
        early.jobs.pop(other)  # type: ignore[attr-defined]
    slurm.ask("scontrol", "uhold", name)
    slurm.ask("scancel", other)
    slurm.wait(lambda: slurm.states().count("idle") == 8, "idle nodes")
    for _ in range(3):
        assert door.round() == []
    assert slurm.jobs()[name]["comment"].endswith("JobHeldUser, tried 1 time; held]")
    slurm.ask("scontrol", "release", name)
    door.until("COMPLETED", name)


@pytest.mark.parametrize("grace", [0.0, 3.0])
def test_a_stop_requeues(slurm: Daemons, tmp_path: Path, grace: float) -> None:
    """A job gives way to one of a higher tier, after its grace if it does not end on SIGTERM, and runs again."""
    door = Door(slurm, tmp_path / "log.jsonl", price=0.0, grace=grace)
    low = slurm.submit(tmp_path / "end", *OURS, "--nodes=8", "--gres=gpu:4", "--requeue")
    door.until("RUNNING", low)
    high = slurm.submit(1, *OURS, "--partition=urgent", "--nodes=8", "--gres=gpu:4")
    rows = door.until("COMPLETED", high)
    (tmp_path / "end").touch()
    again = door.until("COMPLETED", low)[low]
    assert again["restart_cnt"] == 1 and again["start_time"] >= rows[high]["start_time"]
    assert any("is to end within 3 s" in line for line in door.said) == bool(grace)


def test_a_job_that_ends_on_the_signal_makes_room_at_once(slurm: Daemons, tmp_path: Path) -> None:
    """SIGTERM reaches the job's script, and its grace is not waited for."""
    door = Door(slurm, tmp_path / "log.jsonl", price=0.0, grace=500.0)
    wrap = f"--wrap=trap 'touch {tmp_path}/saved; exit 0' TERM; while sleep 0.1; do :; done"
    words = ("sbatch", "--parsable", "--output=/dev/null", *OURS, "--nodes=8", "--gres=gpu:4", "--requeue", wrap)
    low = slurm.ask(*words).strip()
    door.until("RUNNING", low)
    high = slurm.submit(1, *OURS, "--partition=urgent", "--nodes=8", "--gres=gpu:4")
    door.until("COMPLETED", high)
    assert (tmp_path / "saved").exists() and slurm.jobs()[low]["job_state"] == "COMPLETED"


@pytest.mark.parametrize("end", ["FAILED", "COMPLETED", "RUNNING"])
def test_a_stop_has_a_grace(played: Played, end: str) -> None:
    """One signal; who dies of it or is there still after its grace is requeued, who ends well is done."""
    played.restart(price=0.0, grace=100.0)
    low = played.submit(1, nodes=8, requeue=True, batch_flag=True)
    played.round()
    high = played.submit(2, nodes=8, partition="urgent")
    assert low["job_state"] == "RUNNING" and played.round() == played.round() == []
    assert played.signals == [("--signal=TERM", "--full", "1")] and "is to end within 100 s" in low["comment"]
    until = clock(played.now - 2.0 + 100.0)
    assert f", by {until} for 2 (priority), then it is requeued" in low["comment"]
    assert f"[gangplan: waits: it starts after 1, told to end by {until}]" in high["comment"]
    played.set(low, end)
    played.round(2.0 if end != "RUNNING" else 100.0)
    played.round()
    assert high["job_state"] == "RUNNING" and len(played.signals) == 1
    assert low["job_state"] == ("COMPLETED" if end == "COMPLETED" else "PENDING")
    played.set(high, "COMPLETED")
    for _ in range(3):
        played.round()
    assert low["job_state"] == ("COMPLETED" if end == "COMPLETED" else "RUNNING")


def test_a_stop_that_slurm_forgot_is_told_again(played: Played) -> None:
    """Killed before it saved that a job is requeued, Slurm says that it runs; it leaves, and who was to start does."""
    played.restart(price=0.0)
    low = played.submit(1, nodes=8, requeue=True, batch_flag=True)
    played.round()
    high = played.submit(2, nodes=8, partition="urgent")
    was = dict(low)
    played.round()
    assert high["job_state"] == "RUNNING" and low["job_state"] == "PENDING"
    low |= was
    played.set(high, "PENDING", nodes="", gres_detail=[], priority=0, required_nodes="")
    high["state_reason"] = "JobHeldUser"
    for _ in range(3):
        played.round()
    assert high["job_state"] == "RUNNING" and low["job_state"] == "PENDING" and low["priority"] == 0


@pytest.mark.parametrize("grace", [0.0, 100.0])
def test_a_stop_that_nobody_heard_is_told_again(played: Played, monkeypatch: pytest.MonkeyPatch, grace: float) -> None:
    """While slurmctld is away nobody stops; all that were to do so in the next round, whom a signal is sent too."""
    played.restart(price=0.0, grace=grace)
    low = [played.submit(i, nodes=4, requeue=True, batch_flag=True) for i in (1, 2)]
    played.round()
    high = played.submit(3, nodes=8, partition="urgent")

    def away(*words: str) -> str:
        if words[0] == "scancel" or words[1] == "requeuehold":
            raise AwayError("slurm", "nobody answers")
        return played.order(*words)

    with monkeypatch.context() as patched:
        patched.setattr(rounds, "run", away)
        with pytest.raises(AwayError):
            played.round()
    for _ in range(3):
        played.round(40.0)
    assert [row["job_state"] for row in (*low, high)] == ["PENDING", "PENDING", "RUNNING"]
    assert [x[-1] for x in played.signals] == (["1", "2"] if grace else [])


def test_who_starts_while_it_is_taken_back_stays(played: Played) -> None:
    """Another had its node, left, and Slurm starts the job as it is to be placed anew: the decision stays as it was."""
    row = played.submit(1)
    played.reasons["1"] = "Resources"
    assert played.round() == ["1 on n0"]
    other = played.submit(2, comment="", priority=9)
    played.set(other, "RUNNING", nodes="n0", gres_detail=["gpu:4"])
    view = SlurmView.read()
    played.set(other, "COMPLETED")
    played.set(row, "RUNNING", nodes="n0", gres_detail=["gpu:4"])
    played.door.round(view)
    played.round()
    assert played.core.scheduler.running == ("1",) and played.door.places("1") == ("n0",)


def test_who_cannot_be_requeued_is_not_stopped(played: Played) -> None:
    """A job of `srun`, or without `--requeue`, keeps its nodes."""
    played.restart(price=0.0)
    played.submit(1, nodes=8, requeue=False, batch_flag=True)
    played.round()
    played.submit(2, nodes=8, partition="urgent")
    assert played.round() == played.round() == [] and played.jobs[0]["job_state"] == "RUNNING"


def test_nodes_that_change(recorded: dict[str, Any]) -> None:
    """A node that goes, and GPUs that are fewer than a job there holds: the scheduler has what Slurm has."""
    said = list[str]()
    core = Core(Scheduler(SlurmView.read().fleet))
    door = rounds.SlurmRounds(core, None, said.append, memory=False, spread=False)
    door.round(SlurmView.read())
    assert {"1@n0", "1@n1", "4"} <= {*core.scheduler.running} and "10" in core.scheduler.waiting
    recorded["sinfo --json"]["nodes"].pop()
    door.round(SlurmView.read())
    assert core.scheduler._state.fleet.names == tuple(f"n{i}" for i in range(7))
    recorded["sinfo --json"]["nodes"][0]["gres"] = "gpu:2"
    door.round(SlurmView.read())
    assert core.scheduler._state.fleet.gpus.tolist() == [2, *[4] * 6]
    assert "1@n1" in {name.partition("~")[0] for name in core.scheduler.running} and said
    wait = core.scheduler._count
    door.round(SlurmView.read())
    assert core.scheduler._count == wait  # nothing changed, so nothing is decided


def test_a_job_that_changes_is_told_anew(recorded: dict[str, Any]) -> None:
    """A job that waits and asks for more time, or loses its mark, is not what it was."""
    recorded["sinfo --json"]["nodes"] = recorded["sinfo --json"]["nodes"][:2]
    recorded["scontrol show topology --oneliner"] = ""
    core = Core(Scheduler(SlurmView.read().fleet))
    door = rounds.SlurmRounds(core, None, list[str]().append, memory=False, spread=False)
    door.round(SlurmView.read())
    assert "2" in core.scheduler.waiting
    row = next(row for row in recorded["squeue --json"]["jobs"] if row["job_id"] == 2)
    row["time_limit"] = 5
    door.round(SlurmView.read())
    assert core.scheduler._state.waiting["2~2"].terms.limit == 300.0
    row["job_state"] = "CANCELLED"
    door.round(SlurmView.read())
    assert not {"2", "2~2"} & {*core.scheduler.waiting}
