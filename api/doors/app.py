"""The HTTP door: routes over sessions and solves."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.metadata import version
from io import DEFAULT_BUFFER_SIZE
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response, StreamingResponse
from starlette.exceptions import HTTPException

from gangplan.instances import InstanceError
from gangplan.instances.errors import brief
from gangplan.instances.intake import decoded, io_error, parse_json

from .child import SOLVE, checked_request
from .core import error_of, text_of
from .figures import ServiceMetrics
from .guard import RequestGuard, only_questions
from .limits import Limits, Refusal, closing
from .page import answer, routes
from .sessions import Sessions, most, stateless
from .solves import AcceptedSolve, Solves
from .store import Store

_SMALL = 2**16
"""Bytes of JSON that are parsed at once; more in a thread, so that others need not wait."""
_CHECKED = 2**20
"""Bytes of a problem that is read before its solve is queued; a larger one in the process of the solve."""
_PULSE = 5.0
"""Seconds after which a store that has not answered is down; a database may take longer to be found missing."""
_WAIT = 60.0
"""Maximum number of seconds for which an answer to a solve is waited for."""


async def body_of(request: Request, limits: Limits) -> Any:
    """Return the JSON of a request.

    Raises:
        Refusal: if it is too large, or too slow.
        InstanceError: if it is no JSON.
    """
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body):
            async for part in request.stream():
                parts.append(part)
                if (size := size + len(part)) > limits.bytes:
                    raise Refusal(413, "body", f"has more than {limits.bytes} bytes", {"connection": "close"})
    except TimeoutError:
        raise Refusal(408, "body", f"did not come within {limits.body:g} s", {"connection": "close"}) from None
    content = b"".join(parts)
    if size <= _SMALL:
        return parse_json(decoded(content))
    return await asyncio.to_thread(lambda: parse_json(decoded(content)))


_ERRORS: tuple[type[Exception], ...] = (
    InstanceError, Refusal, HTTPException, RequestValidationError, OSError, sqlite3.Error, Exception,
)  # fmt: skip


async def _wrong(request: Request, error: Exception) -> Response:
    """Answer what cannot be done by its field and what is wrong there."""
    if isinstance(error, Refusal):
        return answer({"error": error.error}, error.status, **error.headers)
    if isinstance(error, InstanceError):
        return answer({"error": error_of(error)}, 400 if error.field == "JSON" else 422)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        words = f"{brief(first.get('input'))}: {first['msg']}"
        return answer({"error": {"field": str(first["loc"][-1]), "problem": words}}, 422)
    if isinstance(error, OSError | sqlite3.Error):
        words = f"cannot be read or written: {io_error(error)}"
        return answer({"error": {"field": "state", "problem": words}}, 503, **{"retry-after": "5"})
    if not isinstance(error, HTTPException):
        return answer({"error": {"field": "service", "problem": f"failed: {type(error).__name__}"}}, 500)
    words = f"{brief(request.url.path)}: {str(error.detail).lower()}"
    return answer({"error": {"field": "path", "problem": words}}, error.status_code, **dict(error.headers or {}))


class _Pulse:
    """Ask a store whether it answers, once at a time: who asks without a token must not use up threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked: asyncio.Task[bool] | None = None

    async def beats(self) -> bool:
        if self._asked is None or self._asked.done():
            self._asked = asyncio.create_task(asyncio.to_thread(self._store.answers))
        asked = self._asked
        await asyncio.wait({asked}, timeout=_PULSE)
        return asked.done() and asked.result()


def build(
    store: Store, limits: Limits, token: str = "", reader: str = "", *, sync: bool = False
) -> tuple[RequestGuard, Solves]:
    """Return the application, which asks for these tokens, and its solves."""
    metrics, sessions, solves = ServiceMetrics(), Sessions(store, limits, sync=sync), Solves(store, limits)
    pulse = _Pulse(store)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await solves.drain(limits.grace)
        store.close()

    app = FastAPI(
        title="gangplan", version=version("gangplan"), openapi_url="/v1/openapi.json", docs_url=None, redoc_url=None,
        lifespan=lifespan, redirect_slashes=False, exception_handlers=dict.fromkeys(_ERRORS, _wrong),
    )  # fmt: skip

    @app.post("/v1/sessions/{name}/events", summary="Answer an event, or each of a list.")
    async def events(name: str, request: Request) -> Response:
        body = await body_of(request, limits)
        most(len(body) if isinstance(body, list) else 1, limits)
        only_questions(request.scope, body)
        found = await sessions.find(name).reply(body)
        metrics.note(found, name)
        return answer(found, 422 if isinstance(found, dict) and "error" in found else 200)

    @app.get("/health", summary="Say whether it takes requests.")
    async def health() -> Response:
        status = "closing" if solves.closing else "ok" if await pulse.beats() else "no state"
        return answer({"status": status}, 200 if status == "ok" else 503)

    @app.get("/metrics", summary="Say what Prometheus reads.")
    async def read_metrics() -> Response:
        gauges = {"requests": metrics.running, "sessions": len(sessions.names()), "solves": len(solves.active)}
        return Response(
            metrics.text(gauges, solves.counts, await sessions.figures()), media_type="text/plain; version=0.0.4"
        )

    @app.post("/v1/solve", summary="Solve a problem; what takes longer than `wait` is followed by its id.")
    async def solve(request: Request) -> Response:
        body = await body_of(request, limits)
        wait = body.pop("wait", _WAIT) if isinstance(body, dict) else 0
        if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= _WAIT:
            raise InstanceError("wait", f"{brief(wait)} is not from 0 to {_WAIT:g} seconds")
        if request.headers.get("content-length", "").isdigit() and int(request.headers["content-length"]) <= _CHECKED:
            await asyncio.to_thread(checked_request, body, SOLVE, ("problem", "time_limit"))
        found = solves.begin(body)
        await solves.wait(found, wait)
        return _told(found)

    @app.get("/v1/solves/{name}", summary="Say how a solve is, or was answered.")
    async def look(name: str) -> Response:
        return _told(solves.find(name))

    @app.delete("/v1/solves/{name}", summary="Have a solve end with the best plan so far.")
    async def cancel(name: str) -> Response:
        found = solves.find(name)
        if not found.over:
            await solves.cancel(found)
            await solves.wait(found, _WAIT)
        return _told(found)

    @app.get("/v1/solves/{name}/progress", summary="Follow a solve by server-sent events.")
    async def progress(name: str, request: Request, after: int = 0) -> Response:
        last = request.headers.get("last-event-id", "")
        begin = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else max(0, after)
        return StreamingResponse(_lines(solves, solves.find(name), begin), media_type="text/event-stream",
                                 headers={"cache-control": "no-store"})  # fmt: skip

    @app.post("/v1/decide", summary="Answer events without keeping anything: cluster and snapshot in, snapshot out.")
    async def decide(request: Request) -> Response:
        found = await asyncio.to_thread(stateless, await body_of(request, limits), limits)
        metrics.note(found["answers"])
        return answer(found)

    @app.get("/v1/sessions", summary="List the schedulers.")
    async def names(request: Request) -> Response:
        return answer({"sessions": sessions.names()} | ({"reads": True} if request.scope.get("reads") else {}))

    @app.put("/v1/sessions/{name}", summary="Make a scheduler.")
    async def make(name: str, request: Request) -> Response:
        body = await body_of(request, limits)
        if solves.closing:
            raise closing()
        return answer({"session": name}, 201 if await sessions.make(name, body) else 200)

    @app.delete("/v1/sessions/{name}", summary="Close a scheduler; its log stays on disk.")
    async def close(name: str) -> Response:
        await sessions.close(name)
        return answer({"session": name})

    @app.get("/v1/sessions/{name}/log", summary="Return the log.")
    async def log(name: str) -> Response:
        sessions.find(name)
        return StreamingResponse(_as_it_is(store.log(name)), media_type="application/jsonl")

    app.openapi = partial(_described, app)  # type: ignore[method-assign]
    app.include_router(routes(sessions, solves, lambda request: body_of(request, limits)))
    return RequestGuard(app, metrics, limits, token, reader), solves


@cache
def _described(app: FastAPI) -> dict[str, Any]:
    """Return the schema of the service; it takes a moment, which nothing else need wait for."""
    from .openapi import described

    return described(get_openapi(title=app.title, version=app.version, routes=app.routes))


def _as_it_is(log: Path) -> Iterator[bytes]:
    """Yield what a log has now, though it grows meanwhile."""
    with log.open("rb") as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (part := file.read(min(left, 16 * DEFAULT_BUFFER_SIZE))):
            left -= len(part)
            yield part


def _told(solve: AcceptedSolve) -> Response:
    return answer(solve.as_dict(), 200 if solve.over else 202, location=f"/v1/solves/{solve.name}")


async def _lines(solves: Solves, solve: AcceptedSolve, after: int) -> AsyncIterator[str]:
    async for news in solves.follow(solve, after):
        yield ": waits\n\n" if news is None else f"id: {news[0]}\nevent: progress\ndata: {text_of(news[1])}\n\n"
    yield f"event: end\ndata: {text_of(solve.as_dict())}\n\n"
