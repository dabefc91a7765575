"""`gangplan log`, `whatif` and `shadow`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Fleet, GangJob, Proximity


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log: of three users' jobs on 4 GPUs, the long ones come first."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(Fleet.regular(1, 2, 2), "heuristic", speeds=Proximity(), log=path)
    for i in range(12):
        scheduler.submit(GangJob(f"j{i}", "m", (2,)), 120.0 - 10 * i, now=float(i), user=f"u{i % 3}", queue="ab"[i % 2])
        scheduler.decide(60.0)
    for i in range(12):
        scheduler.finish(min(scheduler.running), now=60.0 * (i + 1))
        scheduler.decide(60.0)
    return path


def test_whatif(log: Path, tmp_path: Path, cli: Any) -> None:
    """A price lets short jobs pass: less waiting in all, by user and by queue; tables, an object and a page say so."""
    done = cli("whatif", log, "--set", "price=1", "--html", tmp_path / "page.html", "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert (data["jobs"], data["left_out"], data["skipped"]) == (12, {}, 0)
    assert {(x["by"], x["name"]) for x in data["groups"]} >= {("", ""), ("user", "u1"), ("queue", "b")}
    whole = data["groups"][0]
    assert whole["after"]["mean_wait"] < whole["before"]["mean_wait"] and whole["after"]["stops"] > 0
    page = (tmp_path / "page.html").read_text()
    assert '<td class="word">u0</td>' in page and "mean wait" in page and "src=" not in page.split("<body>")[0]
    text = cli("whatif", log, "--set", "price=1").out
    assert "price=1" in text and "mean JCT" in text and max(map(len, text.splitlines())) <= 80


def test_calls_that_could_not_happen(tmp_path: Path, cli: Any) -> None:
    """What was told of a job that has ended by then in the other course is skipped, and counted."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(Fleet.regular(1, 1, 1), "heuristic", log=path)
    scheduler.submit(GangJob("long", "m", (1,)), 1000.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("short", "m", (1,)), 10.0, now=1.0)
    scheduler.decide(60.0)
    scheduler.change("short", priority=1, now=500.0)
    for name, now in (("long", 1000.0), ("short", 1010.0)):
        scheduler.finish(name, now=now)
        scheduler.decide(60.0)
    assert "skipped" not in cli("whatif", path, "--set", "price=1e9").out
    assert "1 calls that could not happen then" in cli("whatif", path, "--set", "price=1").out


def test_parts_of_arguments(log: Path, cli: Any) -> None:
    """A part of an argument is set by dots, as of a dataclass, and changes what it should: far GPUs are slower."""
    same = json.loads(cli("whatif", log, "--json").out)["groups"][0]
    assert same["after"] == pytest.approx(same["before"])
    slow = json.loads(cli("whatif", log, "--set", "speeds.node=.25", "--json").out)["groups"][0]
    assert slow["after"]["mean_jct"] > slow["before"]["mean_jct"]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("prize=1", "set: 'prize' is not one of policy, .*; did you mean price?"),
        ("price", "set: 'price' is not NAME=VALUE"),
        ("price=cheap", "price: 'cheap' is not a number"),
        ("price.a=1", r"price: \{'a': 1\} is not a number"),
        ("speeds.far=1", "set: 'speeds.far=1': 'far' is no part of "),
    ],
)
def test_wrong_settings(log: Path, setting: str, words: str, cli: Any) -> None:
    """A setting that means nothing is refused before anything is played."""
    done = cli("whatif", log, "--set", setting)
    assert done.code == 2 and re.search(words, done.err)


def test_queues(tmp_path: Path, cli: Any) -> None:
    """The share of a queue is set by its name: who is guaranteed more of a full cluster waits less.

    Both queues submit ten jobs of 10 s for the only GPU at once; the one with the guarantee of all is served first:
    waits of 0 to 90 s, 45 s in the mean, and of the other 100 to 190 s.
    """
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(
        Fleet.regular(1, 1, 1), "heuristic", log=path, sharing={"queues": {"a.b": 0.0, "a": 1, "c": 0}}
    )
    for i in range(20):
        scheduler.submit(GangJob(f"j{i}", "m", (1,)), 10.0, now=0.0, queue=("a.b", "c")[i % 2])
    scheduler.decide(60.0)
    for i in range(20):
        scheduler.finish(scheduler.running[0], now=10.0 * (i + 1))
        scheduler.decide(60.0)
    waits = []
    for settings in ((), ("--set", "queue.a.share=0", "--set", "queue.c.share=1")):
        rows = json.loads(cli("whatif", path, *settings, "--json").out)["groups"]
        waits.append({row["name"]: row["after"]["mean_wait"] for row in rows if row["by"] == "queue"})
    assert waits == [{"a.b": 45.0, "c": 145.0}, {"a.b": 145.0, "c": 45.0}]
    done = cli("whatif", path, "--set", "queue.a.share=2")
    assert done.code == 2 and "queue.a.share" in done.err and "share: 2 is more than 1" in done.err
    done = cli("whatif", path, "--set", "queue.z.share=.4")
    assert done.code == 2 and "'z' is no queue; there are a.b, a, c" in done.err


def test_log(log: Path, cli: Any) -> None:
    """It says who got what and which rule decided, and of a job what happened to it; --check decides once more."""
    data = json.loads(cli("log", log, "--check", "--json").out)
    assert (data["jobs"], data["decisions"], data["checked"]) == (12, 24, True)
    assert data["groups"]["tier"]["heuristic"]["jobs"] == 12
    assert {user: row["ended"] for user, row in data["groups"]["user"].items()} == {"u0": 4, "u1": 4, "u2": 4}
    text = cli("log", log).out
    assert "first started by" in text and "policy     heuristic" in text and max(map(len, text.splitlines())) <= 80
    story = cli("log", log, "--job", "j0").out.splitlines()
    assert [line.split(": ", 1)[1][:6] for line in story] == ["submit", "starts", "finish"]
    data = json.loads(cli("log", log, "--job", "j0", "--json").out)
    assert data["job"] == "j0" and [line["words"] for line in data["lines"]] == story
    assert cli("log", log, "--job", "j99").code == 2
    (log.parent / "other").write_text("nothing\n")
    done = cli("log", log.parent / "other")
    assert done.code == 2 and "is no log of a Scheduler" in done.err


def test_who_was_stopped_and_why(tmp_path: Path, cli: Any) -> None:
    """A stop to reclaim a share and the failure of a node are told by cause and queue, and arguments have rows."""
    path = tmp_path / "log.jsonl"
    queues = {"a": {"share": 0.5, "weight": 2.0}, "b": 0.5}
    scheduler = Scheduler(Fleet.regular(1, 1, 2), price=1.0, log=path, sharing={"queues": queues, "least_run": 5.0})
    scheduler.submit(GangJob("long", "m", (2,)), 9000.0, now=0.0, queue="a")
    scheduler.submit(GangJob("wide", "m", (2,)), 9000.0, now=0.0, queue="b")
    scheduler.decide(60.0)
    scheduler.submit(GangJob("short", "m", (1,)), 5.0, now=10.0, queue="b")
    scheduler.decide(60.0)
    scheduler.fail_node(0, now=12.0)
    scheduler.decide(60.0)
    assert {"long", "wide", "short"} == {*scheduler.waiting}
    data = json.loads(cli("log", path, "--json").out)["stops"]
    assert data[""] == {"reclaim": 1, "failure": 1}
    text = cli("log", path).out
    assert "queue a    share 0.5, weight 2" in text and "least_run  5.0" in text and "cut short by" in text


def test_names_that_a_terminal_would_obey(tmp_path: Path, cli: Any) -> None:
    """Whatever names of jobs, queues, users, and nodes hold, tables and lines have escapes of it."""
    path, odd = tmp_path / "log.jsonl", "\x1b[2J\x9b\u202e"
    fleet = replace(Fleet.regular(1, 1, 2), names=(f"n{odd}",))
    scheduler = Scheduler(fleet, log=path)
    for i, user in enumerate((f"u{odd}", "v")):
        name = f"j{i}{odd}"
        scheduler.submit(GangJob(name, "m", (2,)), 9.0, now=float(i), user=user, queue=f"q{i}{odd}")
    told = [str(scheduler.decide(60.0)), str(scheduler.explain(f"j0{odd}")), str(scheduler.explain(f"j1{odd}"))]
    scheduler.finish(f"j0{odd}", now=9.0)
    scheduler.decide(60.0)
    scheduler.finish(f"j1{odd}", now=18.0)
    told.append(cli("log", path).out)
    told.append(cli("log", path, "--job", f"j0{odd}").out)
    told.append(cli("whatif", path).out)
    for text in told:
        assert text.replace("\n", "").isprintable() and r"\x1b[2J\x9b\u202e" in "".join(text.split()), ascii(text)


def test_when_settings_changed(tmp_path: Path, cli: Any) -> None:
    """A change with a time is dated by it; that of a restart, which has none, lies between the events around it."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(Fleet.regular(1, 1, 2), log=path)
    scheduler.submit(GangJob("a", "m", (2,)), 9.0, now=10.0)
    scheduler.configure(price=1.0, now=20.0)
    scheduler.configure(patience=7.0)  # as `reopened` does
    scheduler.decide(60.0, now=30.0)
    scheduler.configure(grace=5.0)
    text = " ".join(cli("log", path).out.split())
    assert "from 20 s price 1.0 after 20 s patience 7.0, by 30 s after 30 s grace 5.0 time" in text


def test_jobs_that_may_not_wait_yet(tmp_path: Path, cli: Any) -> None:
    """A log with a job after another one, an array and a resize is read, and played again alike."""
    path = tmp_path / "log.jsonl"
    scheduler = Scheduler(Fleet.regular(1, 1, 8), log=path)
    scheduler.submit(GangJob("p", "m", (8,)), 600.0, now=0.0)
    scheduler.submit(GangJob("t", "m", (8,)), 3600.0, after=("p",))
    scheduler.submit_array(GangJob("a", "m", (4,)), 2, 60.0, most=1)
    scheduler.decide(60.0)
    scheduler.resize(Fleet.regular(1, 2, 8), now=300.0)
    now = 600.0
    while scheduler.running:
        scheduler.finish(scheduler.running[0], now=now)
        scheduler.decide(60.0)
        now += 600.0
    data = json.loads(cli("log", path, "--json").out)
    assert data["jobs"] == 4 and 0 < data["utilisation"] <= 1
    whole = json.loads(cli("whatif", path, "--json").out)["groups"][0]
    assert whole["jobs"] == 4 and whole["before"] == pytest.approx(whole["after"])


EVENTS = """{"event": "submit", "now": 0, "job": "long", "gpus": 2, "seconds": 100}
{"event": "submit", "now": 0, "job": "short", "gpus": 2, "seconds": 10}
{"event": "start", "now": 0, "job": "long"}
{"event": "end", "now": 100, "job": "long"}
{"event": "start", "now": 100, "job": "short"}
{"event": "end", "now": 110, "job": "short"}
"""


def test_shadow(tmp_path: Path, cli: Any) -> None:
    """Of events, a sacct table and a cluster in a file it tells what gangplan would have done: the short job first."""
    (tmp_path / "events.jsonl").write_text(EVENTS)
    (tmp_path / "sacct.csv").write_text(
        "JobID|User|State|Submit|Start|ElapsedRaw|AllocTRES\n"
        "1|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|100|gres/gpu=2\n"
        "2|b|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:01:40|10|gres/gpu=2\n"
    )
    (tmp_path / "cluster.json").write_text('{"racks": 1, "nodes": 1, "gpus": 2}')
    for trace, cluster, more in (
        ("events.jsonl", "1x2", ()),
        ("sacct.csv", "1x1x2", ("--known",)),
        ("sacct.csv", tmp_path / "cluster.json", ("--known", "--set", "policy=heuristic")),
    ):
        done = cli("shadow", tmp_path / trace, "--cluster", cluster, *more, "--json")
        assert done.code == 0, done.err
        data = json.loads(done.out)
        whole = data["groups"][0]
        assert (whole["before"]["mean_wait"], whole["after"]["mean_wait"]) == (50.0, 5.0)
        assert "counterfactual" in data["caveat"]
    assert "counterfactual" in cli("shadow", tmp_path / "events.jsonl", "--cluster", "1x2").out


def test_shadow_of_stdin(monkeypatch: pytest.MonkeyPatch, cli: Any) -> None:
    """Events come from stdin, and are shown anew as they come; what cannot be compared yet is not."""

    class Stdin:
        buffer: Any = (line.encode() for line in EVENTS.splitlines(keepends=True))

    monkeypatch.setattr("sys.stdin", Stdin())
    monkeypatch.setattr("gangplan.cli.whatif.time", SimpleNamespace(monotonic=count().__next__))
    done = cli("shadow", "-", "--cluster", "1x2", "--follow", "0.000001", "--json")
    shown = [json.loads(line)["jobs"] for line in done.out.splitlines()]
    assert done.code == 0 and shown == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"event": "submit", "job": "a", "gpus": 1}, "line 1: now: is missing"),
        ({"event": "submit", "now": 0, "job": "a"}, "line 1: gpus: is missing"),
        ({"event": "submit", "now": 0, "job": "a", "gpus": 0}, "line 1: gpus: 0 is not positive"),
        ({"event": "start", "now": 0, "job": "a"}, "line 1: job: 'a' is not known"),
        ({"event": "fail_node", "now": 0}, "line 1: node: is missing"),
    ],
)
def test_wrong_events(tmp_path: Path, line: Any, words: str, cli: Any) -> None:
    """A wrong event is refused with its line and field."""
    (tmp_path / "events.jsonl").write_text(json.dumps(line) + "\n")
    done = cli("shadow", tmp_path / "events.jsonl", "--cluster", "1x2")
    assert done.code == 2 and words in done.err


def test_what_a_shadow_refuses(log: Path, tmp_path: Path, cli: Any) -> None:
    """Gangplan's own log, a table without starts and a wrong cluster are refused."""
    (tmp_path / "trace.csv").write_text("job_id,num_gpu,submit_time,duration\na,1,0,1\n")
    (tmp_path / "cluster.json").write_text('{"rack": 1}')
    for trace, cluster, words in (
        (log, "1x2", "gangplan whatif plays it"),
        (tmp_path / "trace.csv", "1x2", "tells not when jobs started"),
        (tmp_path / "trace.csv", "many", "cluster: 'many' is not"),
        (tmp_path / "trace.csv", tmp_path / "cluster.json", "cluster.rack: is unknown; did you mean racks?"),
    ):
        done = cli("shadow", trace, "--cluster", cluster)
        assert done.code == 2 and words in done.err
