"""Play a log again: the scheduler as it was when its last line was written, to the byte of its snapshot."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from os import PathLike
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number

from ..queueing.request import Request
from ..scheduler import Scheduler
from ..state import SchedulerState
from ..stopping.grace import tell
from .read import ReadLog, at_line, read_log
from .values import decode
from .write import DECIDE, RESTORE, Journal

AMPLE = 600.0
"""Deadline of a decision that is made again, seconds: no clock cuts it."""


class Unknown:
    """Stand for a policy of the user's own, whose decisions the log has."""

    def rank(self, view: Any) -> list[float]:
        """Refuse to decide."""
        raise InstanceError("policy", "is the user's own: give it too")


def scheduler_of(log: ReadLog, policy: Any = None) -> Scheduler:
    """Return the scheduler of a log as it was made, before its first event."""
    known = Unknown() if isinstance(log.policy, dict) else log.policy
    with at_line(1, log.path):
        return Scheduler(log.fleet, policy or known, **log.arguments)


def replay(
    log: ReadLog,
    policy: Any = None,
    *,
    check: bool = False,
    after: Callable[[Scheduler, Mapping[str, Any]], None] = lambda scheduler, row: None,
    scheduler: Scheduler | None = None,
) -> Scheduler:
    """Return the scheduler as a log leaves it.

    An `InstanceError` names the line that cannot be played, or that decides otherwise.

    Args:
        log: to be played.
        policy: of the user's own.
        check: make decisions again and compare them with the log, except those that the clock may have cut and those
            of a user's own policy, which may remember what no log has. By default decisions are taken from the log,
            whatever this version would decide.
        after: called after each line.
        scheduler: as `scheduler_of` returns it.
    """
    scheduler = scheduler_of(log, policy) if scheduler is None else scheduler
    for number, row in log.rows:
        scheduler._state.bounded = False  # what was done is done
        with at_line(number, log.path):
            if row.get("fitted") and scheduler._state.learned is not None:
                scheduler._state.learned.model.refresh()
            if row["event"] != DECIDE:
                call(scheduler, row)
            elif check and "cut" not in row:
                _again(scheduler, row)
            else:
                carry_out(scheduler, row)
            after(scheduler, row)
    scheduler._state.bounded = True
    return scheduler


def call(scheduler: Scheduler, row: Mapping[str, Any], now: float | None = None) -> Any:
    """Tell a scheduler what a line says, at its time or another."""
    name = row["event"]
    method = getattr(type(scheduler), name, None)
    if not hasattr(method, "recorded"):
        raise InstanceError("event", f"{name!r} is nothing that this version of Scheduler is told")
    if name == RESTORE:
        return scheduler._restore(row["snapshot"], decode(row.get("nodes")), row.get("settings"))
    rest = {key: decode(value) for key, value in row.items() if key not in ("event", "now", "fitted")}
    if _has_time(method):
        rest["now"] = row["now"] if now is None else now
    return getattr(scheduler, name)(**rest)


def carry_out(scheduler: Scheduler, row: Mapping[str, Any]) -> None:
    """Do what a line says that a decision did; after an `InstanceError` the state is of no use any more."""
    state, after = scheduler._state, row.get("after", {})
    for field, value in (("number", row["number"]), *after.get("promises", {}).items()):
        require_number(value, field, whole=field == "number")
    state.advance(row["now"])
    state.age()
    scheduler._count = row["number"]
    if (learned := state.learned) is not None:
        if after.get("fits"):
            learned.model.refresh()
        for model in after.get("kinds", ()):
            learned.kind(model)
    if scheduler._network is not None and "leader" in after:
        scheduler._network.think(state)
        scheduler._network.guard.leader = after["leader"]
    state.queue.order = after.get("order", state.settings.order)
    for stop in row.get("stops", ()):
        state.find(stop["job"], "runs")
        state.halt(stop["job"])
    for start in row.get("starts", ()):
        state.find(start["job"], "waits")
        _start(state, state.waiting[start["job"]], start)
    for told in row.get("stopping", ()):
        tell(state, told)
    if "claims" in after:
        state.notices.claim(after["claims"])
    rows = ([each["job"] for each in row.get(name, ())] for name in ("stops", "starts"))
    state.note_freed(*rows)
    state.mending.torn = {}
    state.mending.load(state, after.get("torn", ()))
    state.waiting = {name: state.waiting[name] for name in after.get("waiting", state.waiting)}
    for name in after.get("running", ()):
        state.running[name] = state.running.pop(name)
    _rest(scheduler, after)
    scheduler._intervals.decided(state, [start["job"] for start in row.get("starts", ())])


def _rest(scheduler: Scheduler, after: Mapping[str, Any]) -> None:
    """Enter what else a decision changed."""
    state = scheduler._state
    state.promises = dict(after.get("promises", state.promises))
    scheduler._watchdog.faults.update(after.get("faults", ()))
    if "shares" in after:
        state.accounts.load(after["shares"])
    if state.interference is not None and "weights" in after:
        state.interference.recent.clear()
        state.interference.recent.extend(after["weights"])
    if state.learned is not None and "speeds" in after:
        state.learned.go_on(after["speeds"])


def _start(state: SchedulerState, request: Request, start: Mapping[str, Any]) -> None:
    degree, nodes = start["degree"], {state.node(name): tuple(gpus) for name, gpus in start["nodes"].items()}
    if wrong := state.wrong(request, degree, nodes):
        raise InstanceError("starts", wrong[0])
    if not state.put(state.runs(request, degree, nodes)):
        raise InstanceError("starts", f"{request.name}: cores, memory or NIC are too few")


@cache
def _has_time(method: Any) -> bool:
    return "now" in inspect.signature(method).parameters


def _again(scheduler: Scheduler, row: Mapping[str, Any]) -> None:
    """Decide again, and compare."""
    decision = scheduler.decide(AMPLE, now=row["now"])
    for field, key in (("stops", "other"), ("starts", "degree")):
        made = [(x.job, getattr(x, key), {n: list(g) for n, g in x.nodes.items()}) for x in getattr(decision, field)]
        told = [(x["job"], x[key], x["nodes"]) for x in row.get(field, ())]
        if made != told:
            pair = next((p for p in zip(made, told, strict=False) if p[0] != p[1]), (made, told))
            raise InstanceError(field, f"are decided otherwise: {pair[0]} now, {pair[1]} in the log")


def resume(path: str | PathLike[str], policy: Any, sync: bool, every: int) -> Scheduler:
    """Return the scheduler that wrote a log, going on with it; see `Scheduler.open`."""
    log = read_log(path, last=True)
    if isinstance(log.policy, dict) and policy is None:
        raise InstanceError("policy", f"is an object of {log.policy.get('name')}: give one", log.path)
    scheduler = replay(log, policy)
    scheduler._journal = Journal.resume(log, sync, every)
    scheduler._journal.tidy(scheduler)
    return scheduler
