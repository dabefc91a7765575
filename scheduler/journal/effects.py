"""What a decision changes beside its starts and stops: noted with it, so that a replay need not decide again."""

from __future__ import annotations

from collections.abc import Mapping
from sys import float_info
from typing import TYPE_CHECKING, Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number

from ..durations import predict_again
from ..queueing.request import Request
from ..state import SchedulerState
from ..stopping.notices import tell
from ..stopping.running_jobs import RunningJob

if TYPE_CHECKING:
    from ..decision import Decision
    from ..scheduler import Scheduler

CALM = 0.3
"""Share of its deadline within which a decision ends that no clock cuts: the first cut is at 0.4 of it."""
DEADLINE = 0.05
"""Deadline of `decide` where none is given, seconds."""


class Before:
    """Keep what is known before a call, to tell what the call changed."""

    def __init__(self, scheduler: Scheduler, decides: bool) -> None:
        state = scheduler._state
        self.stale = self.is_stale(scheduler)
        if decides:
            self._promises, self._faults = dict(state.promises), dict(scheduler._watchdog.faults)
            self._undone, self._claims = state.undone, dict(state.notices.claims)
            self._kinds = 0 if state.learned is None else len(state.learned.model.kinds)
            self._thoughts = scheduler._network and scheduler._network.thoughts

    @staticmethod
    def is_stale(scheduler: Scheduler) -> bool:
        """Return whether speeds were reported that are not fitted yet."""
        learned = scheduler._state.learned
        return learned is not None and learned.model.stale

    def effects(self, scheduler: Scheduler, decision: Decision, deadline: float | None) -> dict[str, Any]:
        """Return what a decision changed, and whether another clock could have it decide otherwise."""
        state, after = scheduler._state, dict[str, Any]()
        if state.promises != self._promises:
            after["promises"] = dict(state.promises)
        if state.notices.claims != self._claims:
            after["claims"] = state.notices.claimed()
        if scheduler._watchdog.faults != self._faults:
            after["faults"] = dict(scheduler._watchdog.faults)
        if state.queue.order != state.settings.order:
            after["order"] = state.queue.order
        undone = state.undone != self._undone or any(stop.cause != "gain" for stop in decision.stops)
        if undone:
            after |= {"waiting": list(state.waiting), "running": list(state.running)}
            if state.interference is not None:
                after["weights"] = list(state.interference.recent)
        if (learned := state.learned) is not None:
            after["fits"] = self.stale and not learned.model.stale
            after["kinds"] = list(learned.model.kinds)[self._kinds :]
            after["speeds"] = learned.progress() if undone else {"seconds": learned.seconds}
        if state.sharing.halflife is not None:  # means of the past, to the last bit
            after["shares"] = [row for row in state.accounts.save() if row[2] == state.now]
        if scheduler._network is not None and scheduler._network.thoughts != self._thoughts:
            after["leader"] = scheduler._network.guard.leader
        after |= state.mending.save()
        row = {"after": after} if after else {}
        ahead = scheduler._ahead
        cut = decision.more or (ahead is not None and ahead.late)
        cut = cut or decision.seconds > CALM * (DEADLINE if deadline is None else deadline)
        return row | ({"cut": True} if cut or scheduler._asked is not None else {})


def carry_out(scheduler: Scheduler, row: Mapping[str, Any]) -> None:
    """Do what a line says that a decision did; after an `InstanceError` the state is of no use any more."""
    state, after = scheduler._state, row.get("after", {})
    for field, value in (("number", row["number"]), *after.get("promises", {}).items()):
        require_number(value, field, whole=field == "number")
    state.now = state.at(row["now"])
    state.accounts.now = state.now
    if state.calendar.tick(state.now):
        state.closing()
    state.later.tick(state)
    predict_again(state)
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
    slower = state.slower(request, degree, nodes)
    end = min(state.now + request.lasts(degree, slower), float_info.max)
    least = state.sharing.least_run
    if not state.put(RunningJob(request, degree, state.now, end, dict(sorted(nodes.items())), slower, least)):
        raise InstanceError("starts", f"{request.name}: cores, memory or NIC are too few")
