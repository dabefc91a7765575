"""Who gets the time: by the table, by what is loaded, by how much time there is."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any
from unittest.mock import Mock

import pytest

from gangplan import solve
from gangplan.hybrid import Entry, display, guard, portfolio, table
from gangplan.hybrid.portfolio import Crew
from gangplan.instances import InstanceError
from gangplan.instances.generators import generate
from gangplan.instances.generators.families import make, seed_of
from gangplan.instances.readers.shops import parse_jobshop
from gangplan.solvers import Run, Turn
from gangplan.solvers.method import Method, suite
from gangplan.solvers.schedule import grain


def idle(run: Run, prepared: Any) -> None:
    """Do nothing."""


LEARNED = Entry("throughput", "learned", Method(idle), share=0.2, learned=True)


@pytest.fixture
def with_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give throughput a learned method, and nothing else that is."""
    monkeypatch.setattr(table, "ENTRIES", (LEARNED, *table.ENTRIES))


def surveyed(run: Run) -> Crew:
    """Return who plans the timetable of a run."""
    crew = Crew(run, "auto")
    crew.prepared = suite(run.problem.objective).prepare(run)
    crew.survey()
    return crew


def planned(problem: Any, *seconds: float) -> list[dict[str, float]]:
    """Return the shares by name, in order, with so many seconds left each, whatever preparing takes."""
    run = Run(problem, time_limit=60)
    crew = surveyed(run)
    plans = [crew.plan(0.0, left) for left in seconds]
    return [{slot.entry.name: slot.given.share for slot in x.slots} for x in plans]


def small() -> Any:
    """Return a problem like those of training."""
    return make("throughput", "layered", seed_of("train", 1), 40)


def test_preparing_again_may_take_all_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that stops while the problem is prepared once more ends, and is not taken for one without processes."""
    run = Run(small(), time_limit=60)
    crew = surveyed(run)
    slot = next(x for x in crew.plan(0.0, 60.0).slots if x.where == "thread")

    def stopped(self: Crew) -> None:
        run.stop_reason = "time limit"
        raise TimeoutError

    crew.prepared = None
    monkeypatch.setattr(Crew, "prepare", stopped)
    with pytest.raises(TimeoutError):
        crew.take_turn(slot)
    assert not run.notes


@pytest.mark.usefixtures("with_learned")
def test_the_order_of_the_table() -> None:
    """After the quick methods comes the policy, then the table; the last of all has all that is left."""
    (shares,) = planned(small(), 60.0)
    assert list(shares) == ["pipedream", "learned", "pipeline", "local_search", "bounds", "cpsat"]
    assert list(shares.values()) == [0.6, 0.2, 0.6, 0.45, 0.3, 1.0]


@pytest.mark.parametrize(("jobs", "share"), [(20, 0.1), (60, 0.6)])
def test_few_jobs_are_searched_before_most_of_annealing(jobs: int, share: float) -> None:
    """Of few jobs the search over starts begins after a tenth of the time, of more when annealing has had its share."""
    run = Run(generate("moldable", jobs=jobs, seed=1), time_limit=60)
    slots = [slot for slot in surveyed(run).plan(0.0, 60.0).slots if not slot.given.quick]
    names = [slot.entry.name for slot in slots]
    assert names[:2] == ["local_search", "starts"] and slots[0].given.share == share
    assert names[2:] == (["local_search", "cpsat"] if jobs == 20 else ["cpsat"])


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("objective", {"objective": "speed"}),
        ("name", {"name": ""}),
        ("name", {"name": "auto"}),
        ("share", {"share": 0.0}),
        ("share", {"share": 1.5}),
    ],
)
def test_bad_entries(field: str, changes: dict[str, Any]) -> None:
    """An entry that cannot be is refused by the name of its field."""
    with pytest.raises(InstanceError) as caught:
        replace(LEARNED, **changes)
    assert caught.value.field == field


def test_short_deadlines_leave_slow_heuristics_for_the_end() -> None:
    """With a tenth of a second the bounds of tens of milliseconds come after the searches."""
    long, short = planned(make("step", "layered", seed_of("validation", 1), 30), 60.0, 0.1)
    assert next(iter(long)) == "bounds"
    assert list(short).index("local_search") < list(short).index("bounds")


def test_a_long_queue_is_what_its_methods_call_one() -> None:
    """The table has prices before lists of just those schedules of which few lists are tried."""
    assert table.LONG == grain.LONG


def test_where_there_is_little_the_first_plan_may_take_all() -> None:
    """Below the time that a process needs, quick methods have all that is left, and searches still share it."""
    (plan,) = planned(small(), 0.03)
    (searches,) = planned(make("step", "layered", seed_of("validation", 1), 30), 0.03)
    assert (plan["pipedream"], searches["list_schedule"], searches["local_search"]) == (1.0, 0.6, 1.0)


def test_nothing_is_kept_for_what_could_not_begin() -> None:
    """A search has all of a tenth of a second if only solvers follow, which would need a process; not of a second."""
    problem = make("placement", "gangs", seed_of("validation", 1), 8)
    shares = [shares["local_search"] for shares in planned(problem, 0.1, 1.0)]
    assert shares[0] == 1.0 > shares[1]


def test_what_may_hang_or_crash_has_a_process() -> None:
    """Searches run in threads; solvers, and what only proves bounds, do not."""
    foreign = {(x.objective, x.name, replace(x, method=table.own(x.objective)[x.name]).foreign) for x in table.ENTRIES}
    assert foreign >= {("latency", "local_search", False), ("schedule", "starts", False), ("stages", "ideals", False)}
    assert foreign >= {("step", "cpsat", True), ("placement", "bounds", True)}


@pytest.mark.usefixtures("with_learned")
def test_no_policy_where_encoding_takes_too_long() -> None:
    """A graph of thousands of ops and a deadline of a tenth of a second leave no time for a policy."""
    problem = generate("layered", ops=3000, layers=30, training=False, devices=4, seed=1)
    short, long = planned(problem, 0.2, 30.0)
    assert "learned" not in short and "learned" in long


def test_the_result_says_who_ran_and_why_others_did_not() -> None:
    """Every method that suits the problem has a turn within the time, or a reason; turns here and there add up."""
    problem = generate("layered", ops=60, layers=8, training=False, devices=4, variant="free", seed=1)
    result = solve(problem, time_limit=1.0, workers=1)
    names = {entry.name for entry in portfolio.suited(problem)}
    assert names <= {turn.method for turn in result.turns} | set(result.left_out)
    assert result.turns[0].method == "pipedream" and result.turns[0].where == "thread"
    assert all(0 <= turn.begin <= turn.end <= 1.0 + 1e-9 for turn in result.turns)
    assert 0 < sum(turn.ran for turn in result.turns) <= result.wall_seconds
    (named,) = solve(problem, time_limit=60, workers=1, method="pipedream").turns
    assert (named.method, named.why) == ("pipedream", "asked for by name")


def test_the_table_of_turns_has_80_columns() -> None:
    """The display's table has a line for every turn, and one or more for every method left out."""
    turns = (Turn("least_interference", "here", "no process to be had", 0.0, 100.0, 20.5),)
    left_out = {"cpsat": "it does not model all of the problem, or its model would be too large for it"}
    result = solve(small(), time_limit=1.0, workers=1)
    lines = [*display._turns(replace(result, turns=turns, left_out=left_out))]
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line and line[0] != " "] == ["method", "least_interference", "cpsat"]


@pytest.mark.usefixtures("ticking_clock")
def test_what_had_time_enough_keeps_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Amid searches in this process nothing is planned anew: a method does not lose its turn to the one before it."""

    def spin(run: Run, prepared: Any) -> None:
        until = time.perf_counter() + 0.2
        while time.perf_counter() < until:
            pass

    first, second, last = (Entry("throughput", x, Method(f)) for x, f in (("a", spin), ("b", idle), ("c", idle)))
    monkeypatch.setattr(portfolio, "suited", lambda _: [first, replace(second, least=0.3), last])
    result = solve(small(), time_limit=0.45, workers=1)
    assert [turn.method for turn in result.turns] == ["a", "b", "c"]
    assert {turn.where for turn in result.turns} == {"thread"}


@pytest.mark.parametrize("seconds", [0.05, 30.0])
def test_a_search_goes_before_a_process_that_is_not_ready(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver whose process takes a while waits for the end of one search, not the search for the process."""

    def begin(theirs: socket.socket, objective: str, *, library: str) -> Mock:
        line = Connection(os.dup(theirs.fileno()))

        def work() -> None:
            with suppress(EOFError, OSError):
                line.recv_bytes()
                time.sleep(seconds)
                line.send(("ready",))
                line.recv_bytes()
                line.send(("end", (), {}, {}, False))

        threading.Thread(target=work, daemon=True).start()
        return Mock()

    monkeypatch.setattr(guard, "begin", begin)
    entries = [Entry("throughput", "solver", Method(idle, library="json")), Entry("throughput", "search", Method(idle))]
    monkeypatch.setattr(portfolio, "suited", lambda _: [*entries, Entry("throughput", "last", Method(idle))])
    run = Run(small(), time_limit=4.0)
    portfolio.run_methods(run, "auto")
    order = ["solver", "search", "last"] if seconds < 1 else ["search", "last"]
    assert [turn.method for turn in run.turns.values()][: len(order)] == order


def test_a_small_shop_needs_no_process() -> None:
    """CP-SAT solves a small shop in a thread of this process, and a certificate proves it."""
    problem = parse_jobshop("3 3\n0 3 1 2 2 2\n0 2 2 1 1 4\n1 4 2 3 0 1\n")
    result = solve(problem, time_limit=20)
    assert result.objective == suite("step").optimum(problem) and result.standing == "OPTIMAL (certified)"
    assert {turn.where for turn in result.turns} == {"thread"}
