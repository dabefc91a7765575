"""Answer kube-scheduler as an extender: it places pods itself, and asks on which nodes they may be."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.intake import decoded, parse_json

from .objects import Pod

TOP = 10
"""Score of the node that was chosen; the highest that kube-scheduler takes of an extender."""
_LARGEST, _IDLE = 64 * 2**20, 30.0
"""Bytes of a request: kube-scheduler may send all nodes; seconds for which a connection may be silent."""


class Offers:
    """The nodes that were chosen for pods that nobody has bound yet.

    One thread replaces them whole, others read them.
    """

    def __init__(self) -> None:
        self._nodes, self._waits = dict[str, str](), dict[str, str]()

    def renew(self, binds: list[tuple[Pod, str]], waits: Mapping[str, str]) -> list[tuple[Pod, str]]:
        """Take what a step says, the node of each pod and why others wait; return the pods of which it is new."""
        before, self._nodes, self._waits = self._nodes, {pod.uid: node for pod, node in binds}, dict(waits)
        return [(pod, node) for pod, node in binds if before.get(pod.uid) != node]

    def answer(self, verb: str, asked: Any) -> Any:
        """Return the answer to ``filter`` or ``prioritize``, as kube-scheduler's extender API v1 has it.

        Args:
            verb: which of the two.
            asked: ``ExtenderArgs``: the pod, and nodes whole or by name.

        Raises:
            InstanceError: for anything else.
        """
        rows = _lower(asked, "body")
        meta = _lower(_lower(rows.get("pod"), "Pod").get("metadata"), "Pod.metadata")
        names, items = rows.get("nodenames"), None
        if names is None:
            items = _lower(rows.get("nodes"), "Nodes").get("items")
            names = [_lower(_lower(x, "Nodes.items").get("metadata"), "Nodes.items").get("name") for x in _list(items)]
        chosen = self._nodes.get(str(meta.get("uid")))
        names = _list(names)
        if verb == "prioritize":
            return [{"Host": name, "Score": TOP if name == chosen else 0} for name in names]
        key = f"{meta.get('namespace')}/{meta.get('name')}"
        why = "gangplan chose another node" if chosen else f"gangplan: {self._waits.get(key, 'it waits')}"
        found: dict[str, Any] = {"FailedNodes": {name: why for name in names if name != chosen}, "Error": ""}
        if items is None:
            return found | {"NodeNames": [name for name in names if name == chosen]}
        kept = [x for x, name in zip(items, names, strict=True) if name == chosen]
        return found | {"Nodes": {**rows["nodes"], "items": kept}}


def _lower(value: Any, field: str) -> dict[str, Any]:
    """Return an object with its names in lower case: Go reads either, and versions differ."""
    if not isinstance(value, dict):
        raise InstanceError(field, f"{type(value).__name__} is no object")
    return {str(name).lower(): x for name, x in value.items()}


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InstanceError("NodeNames", f"{type(value).__name__} is no list")
    return value


def serve(offers: Offers, host: str, port: int) -> ThreadingHTTPServer:
    """Answer at ``http://host:port/filter`` and ``/prioritize`` in threads, until `shutdown`.

    Raises:
        InstanceError: if the address cannot be had.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = _IDLE

        def do_POST(self) -> None:
            verb, size = self.path.strip("/"), self.headers.get("Content-Length", "")
            if verb not in ("filter", "prioritize") or not size.isdecimal() or int(size) > _LARGEST:
                self.send_error(404 if size.isdecimal() and int(size) <= _LARGEST else 413)
                self.close_connection = True
                return
            try:
                status, answer = 200, offers.answer(verb, parse_json(decoded(self.rfile.read(int(size)))))
            except (InstanceError, ValueError) as error:
                status, answer = 400, {"Error": str(error)}
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        raise InstanceError("extender", f"{host}:{port}: {error}") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
