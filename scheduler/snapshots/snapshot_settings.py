"""A snapshot for other settings: who runs and waits, under the settings of another scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from math import inf, nextafter
from sys import float_info
from typing import Any

from gangplan.instances import InstanceError

from ..queueing.request import Request
from ..queueing.sharing import Sharing
from ..settings import SchedulerSettings
from ..starting.gpu_types import longest_of
from ..state import SchedulerState

RULES = ("sharing", "patient", "proximity")
"""Arguments of a scheduler that a snapshot has beside its settings."""


def differences(theirs: Any, mine: Any, path: str = "") -> Iterator[str]:
    """Yield what differs between two values of JSON, in words: ``queues.a.share is 0.5, here 0.25``."""
    if isinstance(theirs, Mapping) and isinstance(mine, Mapping):
        for name in {**theirs, **mine}:
            yield from differences(theirs.get(name), mine.get(name), f"{path}.{name}" if path else str(name))
    elif theirs != mine:
        words = ["not given" if x is None else "given" if isinstance(x, Mapping) else repr(x) for x in (theirs, mine)]
        yield f"{path or 'it'} is {words[0]}, here {words[1]}"


def retuned(document: Mapping[str, Any], state: SchedulerState, rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snapshot with the settings of a state in which nothing has happened yet, and of such `rules`.

    Jobs are due by the new settings, counted from when they might wait; whoever ran before it was due does still. The
    price of a job that is the scheduler's becomes the new one.

    Raises:
        InstanceError: if jobs are of queues that there are not.
    """
    earlier = {**asdict(state.settings), "max_wait": None, "durations": "told", "grace": 0.0, **document["settings"]}
    old, new, now = SchedulerSettings(**earlier), state.settings, document["now"]
    same = Sharing.of(document.get("sharing")) == state.sharing
    _check_queues(document, state)

    def changed(row: Mapping[str, Any], since: float | None = None) -> dict[str, Any]:
        from .snapshot import _request

        request = _request(row, old)
        due, price = _due(request, old, new, now, since), request.price
        if not request.priced and price == old.price:
            price = new.price
        fresh = {**row, "price": price, "due": due}
        if since is not None and price != request.price:
            fresh["paid"] = request.pays  # its last start cost what it did
        if request.work and (price is None) != (request.price is None):
            fresh["index"] = replace(request, price=price).aged(request.done).index
        return fresh

    later = document.get("later")
    waiting = [changed(row) for row in document["waiting"]]
    due = {row["job"]["name"] for row in waiting if row["due"] <= now}
    rest = {name: value for name, value in document.items() if name not in RULES}
    if later:
        rest["later"] = {**later, "held": [{**row, "request": changed(row["request"])} for row in later["held"]]}
    return {
        **rest,
        "settings": asdict(new),
        "waiting": waiting,
        "running": [row | {"request": changed(row["request"], row["since"])} for row in document["running"]],
        "promises": {name: time for name, time in document.get("promises", {}).items() if name in due},
        "shares": [row for row in document.get("shares", ()) if _kept(row[0], state.sharing)],
        "alike": document.get("alike", True) if same else state.alike,
        **{name: asdict(of) for name, of in rules.items() if of is not None},
    }


def _due(request: Request, old: SchedulerSettings, new: SchedulerSettings, now: float, since: float | None) -> float:
    """Return when a job is due by new settings; one that runs `since` then was due when it started if it was before."""
    longest = longest_of(request)
    before, after = old.due_after(longest), new.due_after(longest)
    if before == after:
        return request.due
    begin = min(max(request.due - before, request.submit), now if since is None else since)
    due = min(begin + after, float_info.max)
    if since is None:
        return due
    return max(due, nextafter(since, inf)) if request.due > since else min(due, since)


def _kept(name: str, sharing: Sharing) -> bool:
    """Return whether what an account used is remembered still."""
    queue, slash, _ = name.partition("/")
    return sharing.halflife is not None and (not queue or queue in sharing.queues) and (not slash or sharing.fair_users)


def _check_queues(document: Mapping[str, Any], state: SchedulerState) -> None:
    """Refuse settings without a queue that has jobs."""
    held = (row["request"] for row in document.get("later", {}).get("held", ()))
    jobs: dict[str, list[str]] = {}
    for row in (*document["waiting"], *(row["request"] for row in document["running"]), *held):
        if queue := row.get("terms", {}).get("queue", ""):
            jobs.setdefault(queue, []).append(row["job"]["name"])
    for queue, names in jobs.items():
        try:
            state.sharing.check(queue)
        except InstanceError as error:
            some = ", ".join(names[:8]) + f" and {len(names) - 8} more" * (len(names) > 8)
            raise InstanceError("sharing.queues", f"{error.problem}; of it are {some}") from None
