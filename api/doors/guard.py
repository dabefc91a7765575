"""Let in who may ask, as much and as many at a time as the limits say; answer in JSON whatever goes wrong inside."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .core import text_of
from .figures import ServiceMetrics
from .limits import Limits, Refusal, busy, closing
from .schema import QUESTIONS

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Any, Send], Awaitable[None]]
_LOG = logging.getLogger("gangplan.serve")
_OPEN, _PAGE = ("/health",), ("/", "/page/")
"""Paths that need no token; the page asks for one."""
_ASKING = ("/events", "/v1/decide", "/v1/verify", "/v1/picture", "/v1/replay")
"""Ends of paths by which nothing need change though something is sent; of events `only_questions` sees to that."""


class RequestGuard:
    """Stand before an application.

    Args:
        app: what answers.
        token: that requests must bear; "" if none is asked for, and then only this machine's own names are heard, so
            that no page of a browser gets in by a name of its own.
        reader: token of who may only read.
    """

    def __init__(self, app: App, metrics: ServiceMetrics, limits: Limits, token: str, reader: str = "") -> None:
        self._app, self._metrics, self._limits, self._token = app, metrics, limits, token.encode()
        self._reader = reader.encode()

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, answered = time.perf_counter(), [0], [False]

        async def noted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            answered[0] = message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        self._metrics.running += 1
        try:
            self._check(scope)
            await self._app(scope, receive, noted)
        except Refusal as refusal:
            await _refuse(noted, refusal)
        except asyncio.CancelledError:  # the service ends, and waits no longer
            if status[0]:
                raise
            await _refuse(noted, closing())
        except Exception as error:
            _LOG.error("%s %s failed: %s: %s", scope["method"], scope["path"], type(error).__name__, error)
            if answered[0]:
                return  # by what FastAPI calls for such
            if status[0]:
                raise
            await _refuse(noted, Refusal(500, "service", f"failed: {type(error).__name__}"))
        finally:
            self._metrics.running -= 1
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "PUT", "POST", "DELETE") else "other"
            self._metrics.requests[method, route, status[0]] += 1
            if "progress" not in route:
                self._metrics.seconds.note(time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        if self._token:
            given = headers.get(b"authorization", b"").partition(b" ")
            bears = given[0].lower() == b"bearer"
            right = bears and hmac.compare_digest(given[2].strip(), self._token)
            reads = bears and bool(self._reader) and hmac.compare_digest(given[2].strip(), self._reader)
            opens = scope["path"] in (*_OPEN, _PAGE[0]) or scope["path"].startswith(_PAGE[1])
            if not (right or reads or opens):
                raise Refusal(401, "authorization", "is no valid bearer token", {"www-authenticate": "Bearer"})
            scope["reads"] = reads and not right
            asks = scope["method"] in ("GET", "HEAD") or (scope["method"] == "POST" and scope["path"].endswith(_ASKING))
            if scope["reads"] and not asks:
                raise only_reads()
        elif (host := headers.get(b"host", b"").decode("latin-1")) and not _is_local(host):
            raise Refusal(421, "host", f"{host[:80]!r} is no name of this machine for itself")
        if self._metrics.running > self._limits.requests and scope["path"] not in _OPEN:
            raise busy("requests", f"{self._limits.requests} are answered at a time", 1)
        size = headers.get(b"content-length", b"0")
        if len(size) > 15 or not size.isdigit() or int(size) > self._limits.bytes:
            words = f"of {size[:20].decode('latin-1')!r} bytes is more than {self._limits.bytes}"
            raise Refusal(413, "body", words, {"connection": "close"})
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if scope["method"] in ("POST", "PUT") and kind != b"application/json":
            raise Refusal(415, "content-type", f"{kind[:40].decode('latin-1')!r} is not application/json")


def only_reads() -> Refusal:
    """Return that a token is not for changes."""
    return Refusal(403, "authorization", "is a token that only reads")


def only_questions(scope: Scope, events: Any) -> None:
    """Refuse events that change something of who may only read."""
    for event in (events if isinstance(events, list) else [events]) if scope.get("reads") else ():
        if not isinstance(event, dict) or not (event.get("event") in [*QUESTIONS] or event.get("dry_run") is True):
            raise only_reads()


def _is_local(host: str) -> bool:
    """Return whether a Host header names this machine by a name that only it has."""
    name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
    return name.lower() in ("localhost", "[::1]") or (name.startswith("127.") and name.replace(".", "").isdigit())


async def _refuse(send: Send, refusal: Refusal) -> None:
    content = text_of({"error": refusal.error}).encode()
    headers = {"content-type": "application/json", "content-length": f"{len(content)}"} | refusal.headers
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": content})
