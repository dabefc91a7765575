"""`gangplan serve`: HTTP, on this machine unless a token is given."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.intake import io_error, read_text

from ..doors.limits import Limits
from ..doors.store import Store
from .output import emit

TOKEN, READ_TOKEN = "GANGPLAN_TOKEN", "GANGPLAN_READ_TOKEN"
_FOLDER = "gangplan-state"
_TOKEN_FILE = f"whose text requests must bear (or {TOKEN}); needed off loopback"


def serve(
    *,
    host: Annotated[str, "address to listen at", "ADDRESS"] = "127.0.0.1",
    port: Annotated[int, "0 for any that is free", (0, 65535)] = 8750,
    state: Annotated[str, "what is kept; a database by postgresql://...", "FOLDER|URL"] = _FOLDER,
    logs: Annotated[str, "of sessions, beside a database", "FOLDER"] = _FOLDER,
    token_file: Annotated[str | None, _TOKEN_FILE, "FILE"] = None,
    read_token_file: Annotated[str | None, f"the same for who may only read (or {READ_TOKEN})", "FILE"] = None,
    limits: Limits,
    sync: Annotated[bool, "have each line of a log on disk before it is answered"] = False,
) -> int:
    """Answer HTTP: solve and verify, and schedulers with their logs. `GET /v1/openapi.json` describes it.

    Ends at SIGTERM or Ctrl-C once what has begun is answered.
    """
    files = (TOKEN, token_file), (READ_TOKEN, read_token_file)
    token, reader = (os.environ.get(name, "") if file is None else read_text(file).strip() for name, file in files)
    if not _loopback(host) and not token:
        raise InstanceError("host", f"{host!r} is not loopback: give a token, by --token-file or {TOKEN}")
    for name, value in (("token", token), ("read_token", reader)):
        if value and len(value) < 16:
            raise InstanceError(name, "has fewer than 16 characters")
    if reader and token in (reader, ""):
        raise InstanceError("read_token", "is the token itself" if token else f"needs a token beside it, {TOKEN}")
    if not (limits.grace >= 0 and limits.seconds > 0 and max(limits.grace, limits.seconds) < float("inf")):
        field, given = ("solve_seconds", limits.seconds) if limits.grace >= 0 else ("grace", limits.grace)
        raise InstanceError(field, f"{given:g} is not a positive number of seconds")
    try:
        from ..doors.serving import run
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette"):
            raise
        raise InstanceError("serve", f"needs FastAPI and uvicorn: {extra('serve')}") from None
    url = state if state.startswith(("postgresql://", "postgres://")) else ""
    for name, value in (("state", "" if url else state), ("logs", logs)):
        if re.match(r"[^/]+://", value):
            raise InstanceError(name, f"{value!r} is not a folder{' or postgresql://...' * (name == 'state')}")
    limits = replace(limits, workers=max(1, limits.workers // limits.solves))
    with _listening(host, port) as listens:
        where = f"http://{f'[{host}]' if ':' in host else host}:{listens.getsockname()[1]}"
        store = Store(Path(logs if url else state), url, sync=sync)
        return run(listens, store, limits, (token, reader), sync=sync, ready=lambda: emit(f"gangplan serves {where}"))


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listens = socket.create_server((host, port), family=family, backlog=1024)
        listens.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; asyncio does so only if told "TCP"
        return listens
    except (OSError, UnicodeError) as error:
        raise InstanceError("port", f"{host} {port}: {io_error(error)}") from None
