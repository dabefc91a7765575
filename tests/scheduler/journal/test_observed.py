"""What another scheduler did, as a past."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gangplan import Scheduler
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.scheduler.journal.history import RAN, WAITED, WITHDRAWN, groups, utilisation
from gangplan.scheduler.journal.observed import parsed_events, past_of
from gangplan.scheduler.journal.play import play

FLEET = Fleet.regular(1, 1, 2)
EVENTS: list[dict[str, Any]] = [
    {"event": "submit", "now": 0, "job": "long", "gpus": 2, "user": "a", "seconds": 90},
    {"event": "start", "now": 0, "job": "long"},
    {"event": "submit", "now": 10, "job": "short", "gpus": 2, "user": "b", "seconds": 5},
    {"event": "stop", "now": 60, "job": "long"},
    {"event": "start", "now": 60, "job": "short"},
    {"event": "end", "now": 65, "job": "short"},
    {"event": "start", "now": 65, "job": "long"},
    {"event": "end", "now": 105, "job": "long"},
]


def test_by_hand() -> None:
    """The other scheduler stopped "long" at 60 s, for free, for "short"; gangplan stops nobody.

    As it was: waits 0 and 50 s, stays 105 and 55 s. "long" worked for 60 + 40 = 100 s, so here it runs to 100 s, and
    "short" from then on: waits 0 and 90 s, stays 100 and 95 s.
    """
    past, left_out = past_of(EVENTS, FLEET)
    played = play(past, Scheduler(FLEET, "heuristic"))
    whole, first, second = groups(past, played.course)
    assert left_out == [] and (first.name, second.name) == ("a", "b")
    assert (whole.before["mean_wait"], whole.after["mean_wait"]) == (25.0, 45.0)
    assert (whole.before["mean_jct"], whole.after["mean_jct"]) == pytest.approx((80.0, 97.5))
    assert (whole.before["stops"], whole.after["stops"]) == (0.5, 0.0)
    assert utilisation(past, past.course) == 1.0


@pytest.mark.parametrize("known", [False, True])
def test_what_the_scheduler_is_told(known: bool) -> None:
    """Where true durations are told, the short job goes first though its user thought it long; else it goes last."""
    rows = [
        {"event": "submit", "now": 0, "job": "first", "gpus": 2, "seconds": 10},
        {"event": "submit", "now": 1, "job": "long", "gpus": 2, "seconds": 20},
        {"event": "submit", "now": 2, "job": "short", "gpus": 2, "seconds": 30},
        *({"event": "start", "now": 3 + 100 * i, "job": x} for i, x in enumerate(("first", "long", "short"))),
    ]
    ends = [{"event": "end", "now": t, "job": x} for t, x in ((13, "first"), (153, "long"), (204, "short"))]
    past, _ = past_of(sorted(rows + ends, key=lambda row: row["now"]), FLEET, known=known)
    first = play(past, Scheduler(FLEET, "heuristic")).course.first
    assert first == ({"first": 0.0, "short": 10.0, "long": 11.0} if known else {"first": 0, "long": 10, "short": 60})


def test_what_has_not_ended() -> None:
    """A job that runs, one that waits and one that was withdrawn are so; one that never fits is left out, and why."""
    more = [
        {"event": "submit", "now": 106, "job": name, "gpus": gpus}
        for name, gpus in (("runs", 1), ("waits", 1), ("gone", 1), ("huge", 3))
    ]
    more += [
        {"event": "start", "now": 107, "job": "runs"},
        {"event": "withdraw", "now": 108, "job": "gone"},
        {"event": "start", "now": 109, "job": "huge"},
    ]
    past, left_out = past_of(EVENTS + more, FLEET)
    fates = {name: job.fate for name, job in past.jobs.items()}
    assert (fates["runs"], fates["waits"], fates["gone"]) == (RAN, WAITED, WITHDRAWN) and "huge" not in fates
    assert len(left_out) == 1 and "huge" in left_out[0]
    assert set(play(past, Scheduler(FLEET)).course.finish) == {"long", "short", "runs", "waits"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"event": "end", "now": 200, "job": "long"}, "line 9: job: 'long' cannot end now: it does not"),
        ({"event": "start", "now": 200, "job": "who"}, "line 9: job: 'who' is not known"),
        ({"event": "submit", "now": 1, "job": "x", "gpus": 1}, "line 9: now: 1.0 is before 105.0"),
        ({"event": "submit", "now": 200, "job": "x"}, "line 9: gpus: is missing"),
        ({"event": "submit", "now": 200, "job": "x", "gpus": 0}, "line 9: gpus: 0 is not positive"),
        ({"event": "submit", "now": 200, "job": "x", "gpus": 1, "usr": "a"}, "line 9: usr: .*did you mean user"),
    ],
)
def test_wrong_events(row: dict[str, Any], words: str) -> None:
    """An event that cannot have happened is refused with its line and its field."""
    with pytest.raises(InstanceError, match=words):
        past_of([*EVENTS, row], FLEET)


def test_lines() -> None:
    """A line that is still being written waits for the next look; one that is no event is refused."""
    content = "".join(json.dumps(row) + "\n" for row in EVENTS).encode()
    assert parsed_events(content) == EVENTS
    assert parsed_events(content[:-5]) == EVENTS[:-1]
    with pytest.raises(InstanceError, match=r"line 1: event: 'begin' is not one of .*submit"):
        parsed_events(b'{"event": "begin", "now": 0}\n')
