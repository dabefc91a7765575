"""Solves and verdicts, each in a process of its own, so many at a time; what a solve found so far can be followed."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.errors import brief
from gangplan.instances.intake import io_error, parse_json

from .core import text_of
from .limits import Limits, Refusal, busy, closing
from .store import Store

_LOG = logging.getLogger("gangplan.serve")
_BEGIN = 30.0
"""Seconds that a process may take to begin and to end, beside its time limit."""
_LEAVE = 15.0
"""Seconds after which a solve that was interrupted is killed."""
_SHOWN = 1000
"""Lines of progress that are kept of a solve."""
_VERDICTS = 2
"""Verdicts at a time."""


@dataclass(eq=False)
class AcceptedSolve:
    """A solve that was accepted.

    Attributes:
        state: ``queued``, ``running``, ``done``, ``failed`` or ``cancelled``.
        progress: what it found so far.
        answer: its result, or its error.
    """

    name: str
    body: Any
    state: str = "queued"
    progress: list[dict[str, Any]] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)
    cancelled: bool = False
    news: asyncio.Condition = field(default_factory=asyncio.Condition)
    process: Process | None = None

    @property
    def over(self) -> bool:
        """Return whether it has ended."""
        return self.state not in ("queued", "running")

    def has_news(self, after: int) -> bool:
        """Return whether there is more than so many lines of progress, or an end."""
        return self.over or len(self.progress) > after

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        last = {"progress": self.progress[-1]} if self.progress else {}
        return {"id": self.name, "state": self.state, **last, **self.answer}


class Solves:
    """Run solves in their turn."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store, self._limits = store, limits
        self._slots, self._verdicts = asyncio.Semaphore(limits.solves), asyncio.Semaphore(_VERDICTS)
        self.active: dict[str, AcceptedSolve] = {}
        self._unsaved: dict[str, AcceptedSolve] = {}
        self.counts = {"done": 0, "failed": 0, "cancelled": 0}
        self.closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked = 0  # verdicts
        self._spare: asyncio.Task[Process] | None = None

    def begin(self, body: Any) -> AcceptedSolve:
        """Accept a solve.

        Raises:
            InstanceError: if its time limit, or its threads, are wrong or too many.
            Refusal: if there are too many.
        """
        if not isinstance(body, dict):
            raise InstanceError("body", f"{brief(body)} is no object")
        seconds = body.get("time_limit")
        if seconds is None:
            raise InstanceError("time_limit", "is missing: seconds")
        require_number(seconds, "time_limit", positive=True)
        if seconds > self._limits.seconds:
            raise InstanceError("time_limit", f"{seconds!r} is more than {self._limits.seconds:g} seconds")
        workers = body.get("workers") or self._limits.workers
        if isinstance(workers, int) and workers > self._limits.workers:
            raise InstanceError("workers", f"{workers!r} is more than {self._limits.workers}")
        if self.closing:
            raise closing()
        if len(self.active) >= self._limits.solves + self._limits.queue:
            limits = [float(x.body["time_limit"]) for x in self.active.values()]
            raise busy("solves", f"{len(limits)} run and wait already", min(limits))
        solve = AcceptedSolve(secrets.token_hex(8), body | {"workers": workers})
        self._store.accept(solve.name, self._limits.kept)
        self.active[solve.name] = solve
        task = asyncio.create_task(self._run(solve, float(seconds)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return solve

    def find(self, name: str) -> AcceptedSolve:
        """Return a solve, of this process or an earlier one."""
        if (known := self.active.get(name) or self._unsaved.get(name)) is not None:
            return known
        row = self._store.solve(name)
        if row is None:
            raise Refusal(404, "solve", f"{brief(name)} is not known")
        return AcceptedSolve(name, None, row[0], answer=parse_json(row[1]))

    async def cancel(self, solve: AcceptedSolve) -> None:
        """Have a solve end with what it has."""
        solve.cancelled = True
        if solve.process is not None and solve.process.stdin is not None:
            solve.process.stdin.close()
        await _tell(solve)

    async def verify(self, body: Any, work: str = "verify") -> dict[str, Any]:
        """Return what the verifier says of a plan, or do other short work of a process: ``picture``, ``replay``."""
        if self._asked >= self._limits.queue:
            raise busy("verify", f"{self._asked} verdicts are asked for already", 1)
        self._asked += 1
        try:
            async with self._verdicts:
                solve = AcceptedSolve("", body)
                await self._work(work, solve, self._limits.seconds)
        finally:
            self._asked -= 1
        return solve.answer

    async def follow(self, solve: AcceptedSolve, after: int) -> AsyncIterator[tuple[int, dict[str, Any]] | None]:
        """Yield what a solve finds, with its number, from one on; `None` where nothing new came for a while."""
        while True:
            for number in range(after, len(solve.progress)):
                yield number + 1, solve.progress[number]
            after = max(after, len(solve.progress))
            if solve.over:
                return
            try:
                async with asyncio.timeout(10), solve.news:
                    await solve.news.wait_for(partial(solve.has_news, after))
            except TimeoutError:
                yield None

    async def wait(self, solve: AcceptedSolve, seconds: float) -> None:
        """Wait until a solve is over, or so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), solve.news:
                await solve.news.wait_for(lambda: solve.over)

    async def drain(self, seconds: float) -> None:
        """Take nothing new; let what runs go on for so long, and then end with what it has."""
        self.closing = True
        for solve in [x for x in self.active.values() if x.state == "queued"]:
            await self.cancel(solve)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for solve in list(self.active.values()):
            await self.cancel(solve)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LEAVE)
        for solve in list(self.active.values()):  # who has not even begun to listen
            if solve.process is not None:
                _kill(solve.process)
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._spare is not None:
            with suppress(Refusal):
                _kill(await self._spare)

    async def _run(self, solve: AcceptedSolve, seconds: float) -> None:
        """Have a solve wait for its turn, and run."""
        turn = asyncio.ensure_future(self._slots.acquire())
        async with solve.news:
            turn.add_done_callback(lambda _: asyncio.ensure_future(_tell(solve)))
            await solve.news.wait_for(lambda: turn.done() or solve.cancelled)
        try:
            if solve.cancelled:
                solve.answer = {"error": {"field": "solve", "problem": "was cancelled before it began"}}
            else:
                solve.state = "running"
                await self._work("solve", solve, seconds * (2 if solve.body.get("certify") else 1))
        except Exception as error:
            solve.answer = {"error": {"field": "service", "problem": f"failed: {type(error).__name__}: {error}"}}
        finally:
            if turn.cancelled() or not turn.cancel():
                self._slots.release()
        state = "cancelled" if solve.cancelled else "failed" if "error" in solve.answer else "done"
        try:
            await asyncio.to_thread(self._store.finish, solve.name, state, text_of(solve.answer))
        except (sqlite3.Error, ValueError) as error:
            self._unsaved[solve.name] = solve  # until this process ends
            _LOG.error("the answer of %s cannot be kept: %s", solve.name, error)
        solve.state = state
        self.counts[state] += 1
        self.active.pop(solve.name, None)
        await _tell(solve)

    async def _work(self, work: str, solve: AcceptedSolve, seconds: float) -> None:
        """Have a process do it, and kill it if it takes far too long."""
        text = await asyncio.to_thread(text_of, {"work": work, "body": solve.body, "memory": self._limits.memory})
        process = await self._process()
        solve.process = process
        try:
            async with asyncio.timeout(seconds + _BEGIN):
                await self._talk(process, f"{text}\n".encode(), solve)
        except TimeoutError:
            solve.answer = {"error": {"field": "time_limit", "problem": f"{seconds:g} s are over, and it did not end"}}
        finally:
            _kill(process)
            await process.wait()
        if not solve.answer:
            words = f"its process ended with code {process.returncode}"
            solve.answer = {"error": {"field": work, "problem": f"there is no answer: {words}"}}

    async def _talk(self, process: Process, text: bytes, solve: AcceptedSolve) -> None:
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(text)
            await process.stdin.drain()
        if solve.cancelled:
            process.stdin.close()
        while line := await process.stdout.readline():
            row = parse_json(line.decode())
            if "progress" not in row:
                solve.answer = row
                return
            if len(solve.progress) < _SHOWN:
                solve.progress.append(row["progress"])
            else:
                solve.progress[-1] = row["progress"]
            await _tell(solve)

    async def _process(self) -> Process:
        """Return a process that has loaded what it needs, and begin the next one."""
        ready, self._spare = self._spare or asyncio.create_task(_begin(self._limits.bytes)), None
        try:
            process = await ready
        except Refusal:  # perhaps long ago
            process = await _begin(self._limits.bytes)
        if not self.closing:
            self._spare = asyncio.create_task(_begin(self._limits.bytes))
        return process if process.returncode is None else await _begin(self._limits.bytes)


async def _tell(solve: AcceptedSolve) -> None:
    async with solve.news:
        solve.news.notify_all()


async def _begin(most: int) -> Process:
    program = [sys.executable, "-P", "-m", "gangplan.doors.child"]
    try:
        return await asyncio.create_subprocess_exec(
            *program, stdin=PIPE, stdout=PIPE, limit=max(2**28, most), start_new_session=True
        )
    except OSError as error:
        raise Refusal(503, "service", f"cannot begin a process: {io_error(error)}", {"retry-after": "5"}) from None


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
