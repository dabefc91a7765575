"""A stand-in for the API server of Kubernetes, written for these tests: list, watch, binding, delete, patch of status.

It speaks HTTP and JSON as the published API does, in pages and with resource versions, and can fail: watches are cut,
old versions are gone, bindings are refused.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

Thing = dict[str, Any]
KINDS = {"Pod": "pods", "Node": "nodes", "JobSet": "jobsets", "PodGroup": "podgroups"}
LISTS = {"/api/v1/pods": "Pod", "/api/v1/nodes": "Node"}
LISTS |= {
    "/apis/jobset.x-k8s.io/v1alpha2/jobsets": "JobSet",
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups": "PodGroup",
}
"""Paths of lists, and of what they are; those of kinds that a cluster has not are not there."""
RACK = "cloud.provider.com/topology-rack"


def pod(name: str, gpus: int = 0, **more: Any) -> Thing:
    """Return a pending pod as a controller creates it."""
    labels = {key.replace("__", "/"): str(value) for key, value in more.pop("labels", {}).items()}
    resources = {"requests": {"cpu": "500m", "memory": "1Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "labels": labels, "annotations": more.pop("annotations", {})},
        "spec": {"schedulerName": "gangplan", "containers": [{"name": "main", "resources": resources}]} | more,
        "status": {"phase": "Pending"},
    }  # fmt: skip


def gang(name: str, pods: int, gpus: int, size: int | None = None, **more: Any) -> list[Thing]:
    """Return the pods of a gang."""
    labels = {"gangplan/gang": name, "gangplan/size": size or pods} | more.pop("labels", {})
    return [pod(f"{name}-{i}", gpus, labels=labels, **more) for i in range(pods)]


def node(name: str, gpus: int = 8, rack: str = "r0", **spec: Any) -> Thing:
    """Return a node that is ready."""
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {RACK: rack, "kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "95900m", "memory": "1000Gi", "nvidia.com/gpu": str(gpus), "pods": "110"},
                   "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


class ApiServer:
    """Pods and nodes, with their history, behind HTTP."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.things: dict[str, dict[str, Thing]] = {"pods": {}, "nodes": {}}
        self.history: list[tuple[int, str, str, Thing]] = []
        self.version, self.oldest, self.cuts = 1, 0, 0
        self.refuse: Callable[[str, str], int | None] = lambda pod, node: None
        """Returns the status with which a binding is refused."""
        self.spoil: Callable[[str], int | None] = lambda pod: None
        """Returns the status with which a condition is refused."""
        self.bindings: list[tuple[str, str]] = []
        self.lists = dict.fromkeys(KINDS.values(), 0)
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                server.get(self)

            def do_POST(self) -> None:
                server.post(self)

            def do_DELETE(self) -> None:
                server.delete(self)

            def do_PATCH(self) -> None:
                server.patch(self)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def close(self) -> None:
        """Stop to listen."""
        self.cut()
        self.http.shutdown()
        self.http.server_close()

    # what a test does

    def put(self, *things: Thing) -> None:
        """Create or change pods and nodes, all at once."""
        with self.lock:
            for thing in things:
                self._note(thing)

    def remove(self, kind: str, *names: str) -> None:
        """Have pods or nodes gone."""
        with self.lock:
            for name in names:
                thing = self.things[kind].pop(name)
                self.version += 1
                self.history.append((self.version, kind, "DELETED", thing))
            self.lock.notify_all()

    def change(self, kind: str, name: str, act: Callable[[Thing], object]) -> None:
        """Change a pod or node."""
        with self.lock:
            thing = json.loads(json.dumps(self.things[kind][name]))
            act(thing)
            self._note(thing)

    def cut(self, forget: bool = False) -> None:
        """Cut all watches; they may not go on where they were if what happened is forgotten."""
        with self.lock:
            self.cuts += 1
            if forget:
                self.version += 1
                self.oldest = self.version
            self.lock.notify_all()

    def where(self) -> dict[str, str]:
        """Return the node of each pod that is bound."""
        with self.lock:
            return {name: x["spec"]["nodeName"] for name, x in self.things["pods"].items() if "nodeName" in x["spec"]}

    # what HTTP does

    def _note(self, thing: Thing) -> None:
        kind, meta = KINDS[thing["kind"]], thing["metadata"]
        self.version += 1
        known = self.things[kind].get(meta["name"])
        meta.setdefault("uid", f"{meta['name']}-{self.version}")
        meta.setdefault("creationTimestamp", f"2026-11-27T10:00:{self.version % 60:02}Z")
        meta["resourceVersion"] = str(self.version)
        thing = json.loads(json.dumps(thing))
        self.things[kind][meta["name"]] = thing
        self.history.append((self.version, kind, "MODIFIED" if known else "ADDED", thing))
        self.lock.notify_all()

    def get(self, request: BaseHTTPRequestHandler) -> None:
        """Answer list and watch."""
        url = urlparse(request.path)
        kind, query = (
            KINDS.get(LISTS.get(url.path, ""), ""),
            {key: value[0] for key, value in parse_qs(url.query).items()},
        )
        if kind not in self.things:
            return _status(request, 404, "NotFound")
        if query.get("watch") in ("true", "True", "1"):
            return self._watch(request, kind, int(query["resourceVersion"]))
        with self.lock:
            self.lists[kind] += 1
            rows, begin = list(self.things[kind].values()), int(query.get("continue", 0))
            end = begin + min(int(query.get("limit", 500)), 3)  # small pages, as a server may choose
            meta = {"resourceVersion": str(self.version), **({"continue": str(end)} if end < len(rows) else {})}
            head = {"kind": f"{LISTS[url.path]}List", "apiVersion": "v1", "metadata": meta}
            return _answer(request, 200, head | {"items": rows[begin:end]})

    def _watch(self, request: BaseHTTPRequestHandler, kind: str, version: int) -> None:
        request.send_response(200)
        request.send_header("content-type", "application/json")
        request.send_header("transfer-encoding", "chunked")
        request.end_headers()

        def say(row: Thing) -> None:
            line = json.dumps(row).encode() + b"\n"
            request.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

        with self.lock:
            cuts = self.cuts
            if version < self.oldest:
                error = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
                say({"type": "ERROR", "object": error | {"message": f"too old resource version: {version}"}})
                request.wfile.write(b"0\r\n\r\n")
                return
            try:
                while cuts == self.cuts:
                    for row in [row for row in self.history if row[0] > version and row[1] == kind]:
                        say({"type": row[2], "object": row[3]})
                    version = self.version
                    self.lock.wait(0.5)
            except OSError:
                pass
        request.close_connection = True  # in the middle of what was promised

    def post(self, request: BaseHTTPRequestHandler) -> None:
        """Bind a pod."""
        body, parts = _body(request), urlparse(request.path).path.split("/")
        assert parts[:4] == ["", "api", "v1", "namespaces"] and parts[5] == "pods" and parts[7] == "binding", parts
        name, target = parts[6], body["target"]
        assert target["kind"] == "Node" and body["metadata"]["name"] == name
        with self.lock:
            thing = self.things["pods"].get(name)
            status = self.refuse(name, target["name"])
            if thing is None:
                return _status(request, 404, "NotFound")
            if status is None and (
                "nodeName" in thing["spec"] or body["metadata"].get("uid") != thing["metadata"]["uid"]
            ):
                status = 409
            if status is not None:
                return _status(request, status, "Conflict" if status == 409 else "InternalError")
            self.bindings.append((name, target["name"]))
            thing = json.loads(json.dumps(thing))
            thing["spec"]["nodeName"] = target["name"]
            self._note(thing)
        return _answer(request, 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201})

    def delete(self, request: BaseHTTPRequestHandler) -> None:
        """Delete a pod, which takes until the test removes it."""
        name = urlparse(request.path).path.rpartition("/")[2]
        _body(request)
        self.change("pods", name, lambda x: x["metadata"].update(deletionTimestamp="2026-11-27T12:00:00Z"))
        _answer(request, 200, self.things["pods"][name])

    def patch(self, request: BaseHTTPRequestHandler) -> None:
        """Set the condition of a pod that waits, or its annotations."""
        path, body = urlparse(request.path).path.removesuffix("/status"), _body(request)
        if (name := path.rpartition("/")[2]) not in self.things["pods"]:
            return _status(request, 404, "NotFound")
        if path != urlparse(request.path).path:
            if (status := self.spoil(name)) is not None:
                return _status(request, status, "InternalError")
            new = {x["type"]: x for x in body["status"]["conditions"]}
            old = [x for x in self.things["pods"][name]["status"].get("conditions", []) if x["type"] not in new]
            self.change("pods", name, lambda x: x["status"].update(conditions=[*old, *new.values()]))
        else:
            self.change("pods", name, lambda x: x["metadata"]["annotations"].update(body["metadata"]["annotations"]))
        return _answer(request, 200, self.things["pods"][name])


def _body(request: BaseHTTPRequestHandler) -> Any:
    return json.loads(request.rfile.read(int(request.headers.get("content-length") or 0)) or b"{}")


def _status(request: BaseHTTPRequestHandler, code: int, reason: str) -> None:
    _answer(request, code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})


def _answer(request: BaseHTTPRequestHandler, code: int, body: Thing) -> None:
    content = json.dumps(body).encode()
    request.send_response(code)
    request.send_header("content-type", "application/json")
    request.send_header("content-length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)
