"""The log as it is written: one line a call, whole or mended."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gangplan import Scheduler
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay

FLEET = Fleet.regular(racks=1, nodes=2, gpus=2)


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def test_one_line_a_call(tmp_path: Path) -> None:
    """Calls that succeed are lines with arguments and times, decisions say what they did; refused calls are none."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, "heuristic", price=60.0, log=path)
    scheduler.submit(GangJob("a", "m", (2,)), 100.0, now=1.0, user="me")
    with pytest.raises(InstanceError):
        scheduler.submit(GangJob("a", "m", (2,)))
    scheduler.decide(1.0)
    scheduler.finish("a", now=2.0)
    head, submit, decide, finish = lines(path)
    assert head["gangplan"] == "log" and head["arguments"]["price"] == 60.0
    job = {"type": "GangJob", "name": "a", "model": "m", "workers": [2]}
    assert submit == {"event": "submit", "now": 1.0, "job": job, "seconds": 100.0, "user": "me"}
    start = {"job": "a", "degree": 2, "nodes": {"node0": [0, 1]}, "tier": "heuristic", "seconds": 100.0, "servers": {}}
    assert decide["starts"] == [start] and decide["number"] == 1 and "cut" not in decide
    assert finish == {"event": "finish", "now": 2.0, "job": "a"}


def test_no_log_is_overwritten_or_shared(tmp_path: Path) -> None:
    """A file that is there is not begun anew, and two schedulers do not write to one."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, log=path)
    with pytest.raises(InstanceError, match="exists"):
        Scheduler(FLEET, log=path)
    with pytest.raises(InstanceError, match="another scheduler"):
        Scheduler.open(path)
    assert scheduler.now == 0.0 and len(lines(path)) == 1


def test_a_full_disk_takes_no_decision_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written is a warning; the next line that can be has the whole state, behind the broken one."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, "heuristic", log=path)
    scheduler.submit(GangJob("a", "m", (2,)), 100.0)
    write = os.write

    def full(file: int, data: bytes) -> int:
        write(file, data[:7])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.warns(RuntimeWarning, match="lacks what happened now"):
        assert scheduler.decide(1.0).starts
    monkeypatch.undo()
    scheduler.finish("a", now=3.0)
    scheduler.submit(GangJob("b", "m", (2,)), 100.0)
    log = read_log(path)
    assert log.notes == ("line 3 is cut off; the next one has the whole state",)
    assert json.dumps(replay(log).snapshot()) == json.dumps(scheduler.snapshot())


def test_an_interrupted_decision_is_mended(tmp_path: Path) -> None:
    """If a call is broken off, who knows what it changed: the next line has the whole state."""

    class Breaks:
        def rank(self, view: Any) -> list[float]:
            raise KeyboardInterrupt

    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(FLEET, Breaks(), log=path)
    scheduler.submit(GangJob("a", "m", (2,)), 100.0)
    with pytest.raises(KeyboardInterrupt):
        scheduler.decide(10.0)
    scheduler.withdraw("a")
    assert lines(path)[-1]["gap"] and "a" in lines(path)[-1]["snapshot"]["finished"]
    assert json.dumps(replay(read_log(path)).snapshot()) == json.dumps(scheduler.snapshot())
