"""Which method gets which slot in which situation; nothing runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gangplan.hybrid.portfolio import timetable
from gangplan.hybrid.table import Entry, register, suited, unregister
from gangplan.instances import InstanceError
from gangplan.instances.generators import generate
from gangplan.solvers import Run
from gangplan.solvers.method import Method


def never(run: Run, prepared: Any) -> None:
    """Fail: planning runs nothing."""
    raise AssertionError


def entry(name: str, **fields: Any) -> Entry:
    """Return an entry of the table."""
    return Entry("throughput", name, Method(never), **fields)


def solver(name: str, **fields: Any) -> Entry:
    """Return an entry of the table whose method is a solver's."""
    return Entry("throughput", name, Method(never, exact=True, library="json"), **fields)


QUICK, SEARCH, EXACT = entry("quick", quick=True), entry("search", share=0.4, short=0.5), solver("exact")
TABLE = (QUICK, SEARCH, EXACT)
PROVER, MINE = entry("prover", beside=True), entry("mine", added=True)


def slots(entries: Sequence[Entry], seconds: float, **facts: Any) -> list[tuple[str, str]]:
    """Return who runs where, in order."""
    return [(x.entry.name, x.where) for x in timetable(entries, 0.0, seconds, **facts).slots]


SITUATIONS: list[tuple[Sequence[Entry], float, dict[str, Any], str]] = [
    # searches run in threads, solvers need a process, and that some time
    (TABLE, 10.0, {}, "quick thread, search thread, exact child"),
    (TABLE, 0.3, {}, "quick thread, search thread, exact child"),
    (TABLE, 0.03, {}, "quick thread, search thread"),
    # what only proves bounds is beside the search where there is a second core and time
    ((*TABLE, PROVER), 10.0, {"cores": 2}, "quick thread, prover beside, search thread, exact child"),
    ((*TABLE, PROVER), 0.4, {"cores": 2}, "quick thread, search thread, exact child, prover child"),
    ((*TABLE, PROVER), 10.0, {"cores": 1}, "quick thread, search thread, exact child, prover child"),
    # registered ones after the quick one
    ((QUICK, MINE, SEARCH), 10.0, {}, "quick thread, mine alone, search thread"),
    ((QUICK, MINE, SEARCH), 0.03, {}, "quick thread, search thread"),
    # what is quick and a solver waits for its turn, but one that is over in no time
    ((SEARCH, solver("slow", quick=True)), 10.0, {}, "search thread, slow child"),
    ((SEARCH, solver("shop", quick=True, alone=True)), 10.0, {}, "shop thread, search thread"),
    # a system without processes
    ((*TABLE, PROVER), 10.0, {"cores": 2, "serves": False}, "quick thread, search thread, exact thread, prover thread"),
    # what needs more than there is goes last, a policy nowhere
    ((entry("slow", least=5.0), SEARCH), 2.0, {}, "search thread, slow thread"),
    ((entry("policy", learned=True, least=5.0), SEARCH), 2.0, {}, "search thread"),
    # a method that would follow itself runs once
    ((SEARCH, entry("search")), 10.0, {}, "search thread"),
    # asked for by name
    ((EXACT,), 10.0, {"named": True}, "exact child"),
    ((EXACT,), 0.1, {"named": True}, "exact thread"),
    ((SEARCH,), 10.0, {"named": True}, "search thread"),
    ((MINE,), 0.01, {"named": True}, ""),
    ((MINE,), 0.1, {"named": True}, "mine alone"),
]


@pytest.mark.parametrize(("entries", "seconds", "facts", "expected"), SITUATIONS)
def test_situations(entries: Sequence[Entry], seconds: float, facts: dict[str, Any], expected: str) -> None:
    """Each situation has its plan."""
    assert ", ".join(map(" ".join, slots(entries, seconds, **facts))) == expected


def test_slots_follow_one_another_to_the_end() -> None:
    """A slot begins where the one before it ends, the last one ends with the solve, and each takes its share."""
    planned = timetable(TABLE, 2.0, 12.0).slots
    assert [x.begin for x in planned] == [2.0, *(x.end for x in planned[:-1])] and planned[-1].end == 12.0
    assert [x.given.share for x in planned] == pytest.approx([0.6, 0.4, 1.0])
    assert planned[0].end - planned[0].begin == pytest.approx(0.6 * 10.0)


def test_who_is_done_is_not_planned_again() -> None:
    """The time that a method has given back goes to those after it; its namesake right after it has had its turn."""
    entries = QUICK, SEARCH, entry("search"), EXACT
    assert [x.entry for x in timetable(entries, 0.1, 10.0, [QUICK]).slots][-1] is EXACT
    assert [x.entry.name for x in timetable(entries, 0.1, 10.0, [QUICK, SEARCH]).slots] == ["exact"]


def test_whoever_could_not_be_followed_has_all() -> None:
    """A search has all of hundredths of a second if only a solver follows, which needs a process; not of a second."""
    for seconds, share in ((0.07, 1.0), (1.0, 0.4)):
        planned = timetable((SEARCH, EXACT), 0.0, seconds)
        assert planned.slots[0].share == share


def test_why_others_have_no_slot() -> None:
    """Who has no time is named with the reason."""
    policy = entry("policy", learned=True, least=1.0)
    planned = timetable((policy,), 0.0, 0.5)
    assert not planned.slots and planned.late == {"policy": "no time to encode the problem"}
    assert timetable((SEARCH, EXACT), 0.0, 0.03).late == {"exact": "no time for a process of its own"}


def test_order_of_the_table() -> None:
    """Quick ones are first, then what others added, then learned ones; a bare function is no method."""
    register(Entry("throughput", "mine", Method(lambda run, prepared: None)))
    try:
        kinds = [(x.quick, x.added, x.learned) for x in suited(generate("layered", ops=20, devices=2))]
    finally:
        unregister("throughput", "mine")
    assert kinds == sorted(kinds, reverse=True) and (False, True, False) in kinds
    with pytest.raises(InstanceError, match=r"method: .* is no Method; write Method"):
        register(Entry("throughput", "bare", lambda run, prepared: None))  # type: ignore[arg-type]
