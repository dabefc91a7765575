"""Sessions: a `Scheduler` each by its name, with a log that it goes on with after a crash."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from gangplan.instances import InstanceError
from gangplan.instances.errors import brief
from gangplan.instances.intake import parse_json
from gangplan.scheduler import Scheduler
from gangplan.scheduler.configure import LIVE
from gangplan.scheduler.described import has_begun, scheduler_of

from .core import Core, Most, as_json, text_of
from .figures import figures_of
from .limits import Limits, Refusal, busy
from .store import Store

T = TypeVar("T")
_QUICK, _FEW = 0.005, 4
"""Mean seconds of a session's requests, and number of events in one, up to which a thread is not worth its while."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


class OpenSession:
    """A scheduler that is opened when it is asked something."""

    def __init__(self, name: str, make: Callable[[], Core]) -> None:
        self.name, self._make = name, make
        self.turn = asyncio.Lock()
        self._core: Core | None = None
        self._mean = 0.0  # seconds of a request

    @property
    def core(self) -> Core:
        """The scheduler, opened if it is not; only in its turn."""
        if self._core is None:
            self._core = self._make()
        return self._core

    async def reply(self, event: object) -> Any:
        """Answer an event, or each of a list, in the order in which requests came."""
        async with self.turn:
            some = event if isinstance(event, list) else [event]
            if self._core is not None and self._mean < _QUICK and len(some) <= _FEW and all(map(_is_quick, some)):
                return self._reply(event)
            return await asyncio.to_thread(self._reply, event)

    async def ask(self, question: Callable[[Core], T]) -> T:
        """Answer a question that changes nothing, in its turn."""
        async with self.turn:
            return await asyncio.to_thread(lambda: question(self.core))

    def _reply(self, event: object) -> Any:
        core, began = self.core, time.perf_counter()
        answer = [core.reply(each) for each in event] if isinstance(event, list) else core.reply(event)
        self._mean += 0.1 * (time.perf_counter() - began - self._mean)
        return answer


def _is_quick(event: Any) -> bool:
    """Return whether an event takes little time, whatever it says."""
    known = ("submit", "finish", "withdraw", "report", "decide")
    return isinstance(event, dict) and event.get("event") in known and "deadline" not in event


class Sessions:
    """Make, find and close sessions."""

    def __init__(self, store: Store, limits: Limits, *, sync: bool = False) -> None:
        self._store, self._limits, self._sync = store, limits, sync
        self._open: dict[str, OpenSession] = {}

    def names(self) -> list[str]:
        """Return all names."""
        return self._store.sessions()

    def find(self, name: str) -> OpenSession:
        """Return a session."""
        if name not in self._open:
            if not _NAME.fullmatch(name) or self._store.session(name) is None:
                raise Refusal(404, "session", f"{brief(name)} is not known: make it by PUT")
            self._open[name] = OpenSession(name, lambda: self._core(name))
        return self._open[name]

    async def figures(self) -> dict[str, Any]:
        """Return what each cluster holds, of those whose logs can be read."""
        found: dict[str, Any] = {}
        for name in self.names():
            with suppress(InstanceError, Refusal):
                found[name] = await self.find(name).ask(lambda core: figures_of(core.scheduler))
        return found

    async def make(self, name: str, request: Any) -> bool:
        """Make a session, and return whether it is new: asking twice for the same is no error."""
        if not _NAME.fullmatch(name):
            raise InstanceError("session", f"{brief(name)} is not 1 to 64 letters, digits, _ or -")
        if not isinstance(request, dict):
            raise InstanceError("body", f"{brief(request)} is no object with a cluster")
        text = text_of(request)
        if self._store.session(name) is None:
            await asyncio.to_thread(scheduler_of, request)  # which refuses what is wrong
        if (known := self._store.session(name)) is not None:
            if known != text:
                await self._change(name, parse_json(known), request)
            return False
        if len(self.names()) >= self._limits.sessions:
            raise busy("session", f"{name!r} is one more than {self._limits.sessions}: close one", 60)
        self._store.enter(name, text)
        await self.find(name).reply([])
        return True

    async def _change(self, name: str, known: dict[str, Any], request: dict[str, Any]) -> None:
        """Change the settings of a session that a request names; what it leaves out stays."""
        changes = {x: value for x, value in request.items() if x not in known or known[x] != value}
        if fixed := [x for x in changes if x not in LIVE]:
            words = f"{name!r} is there, of another {fixed[0]}; of its arguments {', '.join(LIVE)} change"
            raise Refusal(409, "session", words)
        answer = await self.find(name).reply({"event": "configure", **changes}) if changes else {}
        if error := answer.get("error"):
            raise InstanceError(error["field"], error["problem"])
        self._store.enter(name, text_of({**known, **request}))

    async def close(self, name: str) -> None:
        """Close a session; its log stays in the folder under another name."""
        session = self.find(name)
        async with session.turn:
            self._open.pop(name, None)
            session._core = None
            self._store.remove(name)

    def _core(self, name: str) -> Core:
        """Open the log of a session, or begin it."""
        log, request = self._store.log(name), self._store.session(name)
        if request is None:
            raise Refusal(404, "session", f"{brief(name)} was closed")
        if has_begun(log):
            scheduler = Scheduler.open(log, sync=self._sync)
        else:
            scheduler = scheduler_of(parse_json(request), log, sync=self._sync)
        return Core(scheduler, log, Most(seconds=self._limits.deadline), time.time)


def stateless(request: Any, limits: Limits) -> dict[str, Any]:
    """Answer events by a scheduler that is made for them, of a cluster and perhaps of a snapshot; return the next one.

    Raises:
        InstanceError: naming what is wrong with the cluster, the arguments or the snapshot.
    """
    if not isinstance(request, dict):
        raise InstanceError("body", f"{brief(request)} is no object with cluster, snapshot and events")
    rest = {key: value for key, value in request.items() if key not in ("snapshot", "settings", "events")}
    events = request.get("events")
    if not isinstance(events, list):
        raise InstanceError("events", "are missing" if events is None else f"{brief(events)} is no list")
    most(len(events), limits)
    core = Core(scheduler_of(rest), None, Most(seconds=limits.deadline))
    if request.get("snapshot") is not None:
        whose = {"settings": request["settings"]} if "settings" in request else {}
        core.answer({"event": "restore", "snapshot": request["snapshot"], **whose})
    return {"answers": [core.reply(event) for event in events], "snapshot": as_json(core.scheduler.snapshot())}


def most(count: int, limits: Limits) -> None:
    """Raise if there are too many events."""
    if count > limits.events:
        raise InstanceError("events", f"{count} are more than {limits.events} in a request")
