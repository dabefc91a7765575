"""Replay and resuming: the same state to the byte, and what is wrong with a log is said."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from gangplan import Scheduler
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay

FLEET = Fleet.regular(racks=2, nodes=3, gpus=4)


def state(scheduler: Scheduler) -> str:
    """Return the bytes of a state."""
    return json.dumps(scheduler.snapshot())


def play(scheduler: Scheduler, first: int, last: int, deadline: float = 60.0, speeds: bool = False) -> None:
    """Have jobs come, stop, end and fail."""
    for i in range(first, last):
        rng = random.Random(i)
        price = None if i % 5 == 0 else 3.0
        seconds = None if i % 7 == 0 else float(10 ** (i % 6))
        scheduler.submit(GangJob(f"j{i}", "mn"[i % 2], (1 + i % 6,)), seconds, now=float(i), price=price)
        if i % 40 == 20:
            scheduler.fail_node(i // 40 % 6)
        if i % 40 == 30:
            scheduler.repair_node(i // 40 % 6)
        if speeds and scheduler.running:
            scheduler.report(rng.choice(scheduler.running), rng.uniform(0.5, 1.0))
        if i % 3 == 0 and scheduler.running:
            scheduler.finish(rng.choice(scheduler.running))
        scheduler.decide(deadline)


@pytest.mark.parametrize("speeds", [False, True])
@pytest.mark.parametrize("deadline", [60.0, 1e-4])
def test_the_same_to_the_byte(tmp_path: Path, deadline: float, speeds: bool) -> None:
    """From what was decided and by deciding again the state is the same, also where deadlines cut decisions short."""
    scheduler = Scheduler(FLEET, log=tmp_path / "log.jsonl")
    play(scheduler, 0, 120, deadline, speeds)
    log = read_log(tmp_path / "log.jsonl")
    rows = [row for _, row in log.rows if row["event"] == "decide"]
    assert any("cut" in row for row in rows) == (deadline < 1.0)
    assert deadline < 1.0 or any(row.get("stops") for row in rows)
    for check in (False, True):
        assert state(replay(log, check=check)) == state(scheduler)


def test_resuming_after_a_crash(tmp_path: Path) -> None:
    """Cut anywhere, the log drops its half line, and goes on as the scheduler did that was not interrupted."""
    path, cut = tmp_path / "log.jsonl", tmp_path / "cut.jsonl"
    play(Scheduler(FLEET, log=path), 0, 20)
    content = path.read_bytes()
    head = content.index(b"\n") + 1
    for size in random.Random(0).sample(range(head, len(content)), 12):
        cut.write_bytes(content[:size])
        whole = content[: content.rfind(b"\n", 0, size) + 1]
        scheduler = Scheduler.open(cut)
        assert cut.read_bytes() == whole
        scheduler.submit(GangJob("new", "m", (2,)), 5.0)
        scheduler.decide(60.0)
        assert state(replay(read_log(cut))) == state(scheduler)
        del scheduler


def test_a_checkpoint_is_where_resuming_begins(tmp_path: Path) -> None:
    """Behind a checkpoint no line before it is read, and the whole log still gives the same state."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, log=path)
    play(scheduler, 0, 60, speeds=True)
    scheduler.checkpoint()
    play(scheduler, 60, 80, speeds=True)
    short, whole = read_log(path, last=True), read_log(path)
    assert short.rows == whole.rows[-len(short.rows) :] and short.rows[0][1]["event"] == "restore"
    assert state(replay(short)) == state(replay(whole, check=True)) == state(scheduler)


def test_a_long_log_is_read_from_its_last_state(tmp_path: Path) -> None:
    """After thousands of lines opening reads no more than the last ones, however long the scheduler ran."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, log=path)
    for i in range(2200):
        scheduler.submit(GangJob(f"j{i}", "m", (1,)), 5.0)
        scheduler.withdraw(f"j{i}")
    last, saved = read_log(path, last=True), state(scheduler)
    assert len(last.rows) < 2100 and last.rows[0][1]["event"] == "restore" and last.size == path.stat().st_size
    assert [number for number, _ in last.rows] == [*range(last.rows[0][0], last.rows[0][0] + len(last.rows))]
    assert last.rows[-1] == read_log(path).rows[-1]
    del scheduler
    assert state(Scheduler.open(path)) == saved


def test_killed_around_a_state(tmp_path: Path) -> None:
    """Cut anywhere in or beside the states that a log has, it is what a log without any has by then."""
    path, plain, cut = (tmp_path / name for name in ("log.jsonl", "plain.jsonl", "cut.jsonl"))
    scheduler = Scheduler(FLEET, log=path, checkpoint_every=7)
    play(scheduler, 0, 40)
    play(Scheduler(FLEET, log=plain, checkpoint_every=0), 0, 40)
    assert all(scheduler.explain(i).decision == i for i in range(1, 41))  # as if there were none
    content, lines, at, sizes = path.read_bytes(), plain.read_bytes().splitlines(keepends=True), 0, list[int]()
    while (at := content.find(b'{"event":"restore","line":', at + 1)) > 0:
        end = content.index(b"\n", at)
        sizes += [at - 1, at, at + 1, (at + end) // 2, end, end + 1]
    for size in random.Random(0).sample(sizes, 12):
        cut.write_bytes(content[:size])
        plain.write_bytes(b"".join(lines[: sum(b"restore" not in x for x in content[:size].split(b"\n")[:-1])]))
        assert state(Scheduler.open(cut, checkpoint_every=0)) == state(Scheduler.open(plain, checkpoint_every=0))
    assert state(replay(read_log(path), check=True)) == state(scheduler)


def test_a_state_that_cannot_be_written_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is no good is not written: a warning, and the log is played from before it."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, log=path, checkpoint_every=5)
    monkeypatch.setattr(Scheduler, "snapshot", lambda self: {})
    with pytest.warns(RuntimeWarning, match="gets no state to begin from: "):
        play(scheduler, 0, 4)
    monkeypatch.undo()
    assert b"restore" not in path.read_bytes()
    saved = state(scheduler)
    del scheduler
    assert state(Scheduler.open(path)) == saved


def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    """Its decisions are taken from the log, whatever it remembers; to go on, it has to be given."""

    class Whims:
        calls = 0

        def rank(self, view: Any) -> list[float]:
            Whims.calls += 1
            return [float(Whims.calls * len(request.name) % 7) for request, _ in view.options]

    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, Whims(), log=path)
    play(scheduler, 0, 40)
    calls = Whims.calls
    last = state(scheduler)
    assert state(replay(read_log(path), check=True)) == last and Whims.calls == calls
    del scheduler
    with pytest.raises(InstanceError, match=r"policy: is an object of .*Whims: give one"):
        Scheduler.open(path)
    assert state(Scheduler.open(path, Whims())) == last


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"format":1', '"format":2', "line 1: format: 2 is not 1"),
        ('"gpus":[4,', '"gpus":[5,', "line 1: hash: is not that of the cluster"),
        ('"event":"finish"', '"event":"begin"', "event: 'begin' is nothing that this version"),
        ('"event":"finish"', '"event":"_twin"', "event: '_twin' is nothing that this version"),
        ('"now":2.0', '"now":0.5', "now: 0.5 is before"),
        ('"node0":[0', '"node0":[1', "starts: "),
        ('"degree"', '"degrees"', "cannot be read: KeyError"),
        ('"event":"decide"', '"event":decide', "JSON: Expecting value"),
    ],
)
def test_a_log_that_was_altered(tmp_path: Path, old: str, new: str, words: str) -> None:
    """What cannot have been written is refused with its line, and the file."""
    path = tmp_path / "log.jsonl"
    play(Scheduler(FLEET, log=path), 0, 8)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InstanceError) as error:
        replay(read_log(path))
    assert str(error.value).startswith(f"{path}: line ") and words in str(error.value)


def test_another_decision_is_noticed(tmp_path: Path) -> None:
    """Where a decision made once more is another one, the check says which line and how."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, "heuristic", log=path)
    scheduler.submit(GangJob("a", "m", (1,)), 1.0)
    scheduler.decide(60.0)
    path.write_text(path.read_text().replace('"node0":[0]', '"node1":[0]'))
    replay(read_log(path))
    with pytest.raises(
        InstanceError, match=r"line 3: starts: are decided otherwise: .*node0.*now, .*node1.*in the log"
    ):
        replay(read_log(path), check=True)
