"""Serve HTTP until SIGTERM, and then end in good order."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from .app import build
from .limits import Limits
from .solves import Solves
from .store import Store

_LEAVE = 20.0
"""Seconds beside the grace that interrupted solves may take to end."""


class _SignalledServer(uvicorn.Server):
    """One that says when it listens, and that ends in good order at the first signal."""

    def __init__(self, config: uvicorn.Config, solves: Solves, grace: float, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._solves, self._grace, self._ready = solves, grace, ready
        self._draining: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take nothing new; a second signal ends at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        if self.started and self._draining is None:
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._draining = asyncio.ensure_future(self._solves.drain(self._grace))


def run(
    listens: socket.socket, store: Store, limits: Limits, tokens: tuple[str, str], *, sync: bool,
    ready: Callable[[], None],
) -> int:  # fmt: skip
    """Serve at a socket; return the exit code."""
    logging.getLogger("gangplan.serve").setLevel(logging.INFO)
    app, solves = build(store, limits, *tokens, sync=sync)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="on", server_header=False, ws="none",
        timeout_keep_alive=30, timeout_graceful_shutdown=int(limits.grace + _LEAVE),
    )  # fmt: skip
    asyncio.run(_SignalledServer(config, solves, limits.grace, ready).serve(sockets=[listens]))
    return 0
