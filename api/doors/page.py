"""The page at `/`: its files, problems to begin with, and what only a page needs of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from gangplan.instances import dump
from gangplan.instances.errors import brief
from gangplan.instances.generators import generate

from .core import text_of
from .limits import Refusal
from .pictures import cluster_picture, progress_picture, state_of
from .sessions import Sessions
from .solves import Solves

EXAMPLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "throughput": ("GPT-2 small as a pipeline on 4 GPUs", "gpt", {"devices": 4}),
    "step": ("A step of 80 ops on 4 GPUs", "layered", {"ops": 40, "layers": 8, "objective": "step", "seed": 1}),
    "latency": (
        "Latency of a forward pass of 60 ops on 4 GPUs",
        "series_parallel",
        {"ops": 60, "objective": "latency", "seed": 2},
    ),
    "stages": ("BERT in replicated stages on 8 GPUs", "bert", {"devices": 8, "objective": "stages"}),
    "schedule": ("24 jobs over time on 32 GPUs", "moldable", {"jobs": 24, "seed": 1}),
    "pipeline": ("8 micro-batches through 4 devices", "micro_batches", {"memory": 3}),
    "placement": ("24 gangs on two racks", "gangs", {"jobs": 24, "seed": 1}),
}
"""Title, generator and options of each example, by name."""


@cache
def example(name: str) -> str:
    """Return the document of an example."""
    if name not in EXAMPLES:
        raise Refusal(404, "example", f"{name[:40]!r} is not one of {', '.join(EXAMPLES)}")
    _, kind, options = EXAMPLES[name]
    return dump(generate(kind, **options))


STATIC = Path(__file__).parent / "static"
_SMALL = 128
"""Nodes of a cluster up to which it is drawn here, since a process of its own takes longer to begin."""
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
"""Nothing from elsewhere, no code or style inside the page, in nobody's frame."""


def answer(data: Any, status: int = 200, **headers: str) -> Response:
    """Return data as JSON, the same text as in JSON lines."""
    return Response(text_of(data), status, headers, "application/json")


def routes(sessions: Sessions, solves: Solves, read: Callable[[Request], Awaitable[Any]]) -> APIRouter:
    """Return the routes of the page, of a service's sessions and solves; `read` returns the JSON of a request."""
    router, drawing = APIRouter(), asyncio.Semaphore(1)

    async def done(work: str, body: Any) -> Response:
        found = await solves.verify(body, work)
        return answer(found if "error" in found else found["answer"], 422 if "error" in found else 200)

    @router.get("/", include_in_schema=False)
    @router.get("/page/{name}", include_in_schema=False)
    async def static(name: str = "index.html") -> Response:
        if name not in {x.name for x in STATIC.iterdir()}:  # a name of ours: no folder, no link
            raise Refusal(404, "path", f"{brief(name)} is no file of the page")
        return FileResponse(STATIC / name, media_type=_TYPES.get(Path(name).suffix), headers=_HEADERS)

    @router.get("/v1/examples", summary="List problems to begin with.")
    async def examples() -> Response:
        return answer({"examples": [{"name": name, "title": title} for name, (title, *_) in EXAMPLES.items()]})

    @router.get("/v1/examples/{name}", summary="Return a problem to begin with.")
    async def one(name: str) -> Response:
        return Response(await asyncio.to_thread(example, name), media_type="application/json")

    @router.get("/v1/solves/{name}/plan", summary="Return the plan of a solve that is over: a document by itself.")
    async def plan(name: str) -> Response:
        solve = solves.find(name)
        if (found := solve.answer.get("answer", {}).get("plan")) is None:
            if not solve.over:
                raise Refusal(409, "plan", f"{brief(name)} is not over yet: it is {solve.state}")
            raise Refusal(404, "plan", f"{brief(name)} has none")
        return answer(found)

    @router.post("/v1/picture", summary="Draw a plan, a solve so far, or who holds what of a cluster, as SVG.")
    async def picture(request: Request) -> Response:
        body = await read(request)
        if isinstance(body, dict) and "progress" in body:
            return answer(await asyncio.to_thread(progress_picture, body))
        cluster = body.get("cluster") if isinstance(body, dict) else None
        if not isinstance(cluster, dict) or not isinstance(names := cluster.get("names"), list) or len(names) > _SMALL:
            return await done("picture", body)
        async with drawing:
            return answer(await asyncio.to_thread(cluster_picture, body))

    @router.post("/v1/verify", summary="Check a plan without any solver.")
    async def verify(request: Request) -> Response:
        return await done("verify", await read(request))

    @router.post("/v1/replay", summary="Return a log as steps: what each event says and changes.")
    async def replay(request: Request) -> Response:
        return await done("replay", await read(request))

    @router.get("/v1/sessions/{name}/cluster", summary="Say who holds what, who waits and what is down.")
    async def cluster(name: str, search: str = "", after: int = -1) -> Response:
        found = await sessions.find(name).ask(lambda core: state_of(core, search, after))
        return answer(found) if found else Response(status_code=204)

    return router
