"""A client of `gangplan serve`, of the standard library alone."""

from __future__ import annotations

import http.client
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from gangplan.instances import InstanceError, dump
from gangplan.instances.documents import from_document
from gangplan.instances.intake import decoded, parse_json
from gangplan.scheduler.decision import Decision, Start, Stop, Stopping, whole
from gangplan.scheduler.moving.mending import Mend

from .core import text_of

Row = dict[str, Any]


class ServiceError(Exception):
    """Say what the service refused, or that it cannot be reached.

    Attributes:
        status: of HTTP, 0 if there was no answer.
        field: what is wrong.
        problem: and why.
    """

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        self.status, self.field, self.problem = status, str(error.get("field")), str(error.get("problem"))
        super().__init__(f"{self.field}: {self.problem}" + (f" (HTTP {status})" if status else ""))


@dataclass(frozen=True, slots=True)
class Solved:
    """Hold how a solve ended.

    Attributes:
        state: ``done`` or ``cancelled``.
        objective, bound: `None` if there is none.
        plan: of the type that goes with the problem, or `None`.
        answer: all that the service says, as JSON.
    """

    state: str
    objective: float | None
    bound: float | None
    plan: Any
    answer: Row = field(repr=False)


class Client:
    """Ask a service.

    Args:
        url: where it listens.
        token: that it asks for.
        patience: seconds for which a request is repeated while the service says that it is busy (429, 503).
        timeout: seconds in which an answer has to come.
    """

    def __init__(
        self, url: str = "http://localhost:8750", token: str = "", *, patience: float = 60.0, timeout: float = 90.0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InstanceError("url", f"{url!r} is not like http://localhost:8750")
        self._parts, self._patience, self._timeout, self._base = parts, patience, timeout, parts.path.rstrip("/")
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None

    def request(self, method: str, path: str, body: Any = None) -> bytes:
        """Return what a request is answered by; other methods are made of this one.

        Raises:
            ServiceError: if it is refused, or there is no answer.
        """
        until = time.monotonic() + self._patience
        while True:
            status, content, after = self._ask(method, path, body)
            if status < 400:
                return content
            if status not in (429, 503) or time.monotonic() + after > until or path == "/health":
                raise ServiceError(status, _error_in(content))
            time.sleep(after)

    def _ask(self, method: str, path: str, body: Any) -> tuple[int, bytes, float]:
        content = None if body is None else text_of(body).encode()
        with self._lock:
            if self._connection is not None and (sock := self._connection.sock) and select.select([sock], [], [], 0)[0]:
                self.close()  # the service has closed it
            try:
                self._connection = self._connection or self._connect()
                self._connection.request(method, self._base + path, content, self._headers)
                answer = self._connection.getresponse()
                data = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                raise ServiceError(0, {"field": "service", "problem": f"{type(error).__name__}: {error}"}) from None
        return answer.status, data, float(answer.headers.get("retry-after") or 1)

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        assert self._parts.hostname is not None
        return kind(self._parts.hostname, self._parts.port, timeout=self._timeout)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _json(self, method: str, path: str, body: Any = None) -> Row:
        found: Row = parse_json(decoded(self.request(method, path, body)))
        return found

    def health(self) -> Row:
        """Say that it takes requests."""
        return self._json("GET", "/health")

    def metrics(self) -> str:
        """Return what Prometheus reads."""
        return decoded(self.request("GET", "/metrics"))

    def openapi(self) -> Row:
        """Return the schema of the service."""
        return self._json("GET", "/v1/openapi.json")

    def sessions(self) -> list[str]:
        """Return the names of all sessions."""
        return list(self._json("GET", "/v1/sessions")["sessions"])

    def session(self, name: str, cluster: Any = None, **arguments: Any) -> Session:
        """Return a session; with a cluster, make it unless it is there.

        Args:
            name: letters, digits, _ and -.
            cluster: ``20x8``, or arguments of `Fleet.regular`.
            arguments: of `Scheduler`.
        """
        if cluster is not None:
            self._json("PUT", f"/v1/sessions/{quote(name, '')}", {"cluster": cluster, **arguments})
        return Session(self, name)

    def decide(self, cluster: Any, events: Sequence[Row], snapshot: Row | None = None, **arguments: Any) -> Row:
        """Answer events without keeping anything: ``answers`` and the next ``snapshot``."""
        body = {"cluster": cluster, "events": list(events), "snapshot": snapshot, **arguments}
        return self._json("POST", "/v1/decide", body)

    def begin(self, problem: Any, time_limit: float, *, wait: float = 0.0, **options: Any) -> Solve:
        """Begin a solve of a problem or document; `options` such as ``method`` and ``seed``."""
        body = {"problem": _document(problem), "time_limit": time_limit, "wait": wait, **options}
        return Solve(self, self._json("POST", "/v1/solve", body))

    def solve(
        self, problem: Any, time_limit: float, *, progress: Callable[[Row], object] | None = None, **options: Any
    ) -> Solved:
        """Solve a problem, and call `progress` with each incumbent and bound.

        Raises:
            ServiceError: if it failed.
        """
        solve = self.begin(problem, time_limit, **options)
        for row in solve.progress():
            if progress is not None:
                progress(row)
        return solve.result()

    def verify(self, problem: Any, plan: Any, certificate: Row | None = None) -> Row:
        """Return what the verifier says of a plan."""
        proof = {} if certificate is None else {"certificate": certificate}
        return self._json("POST", "/v1/verify", {"problem": _document(problem), "plan": _document(plan), **proof})


class Session:
    """A scheduler in the service."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name
        self._path = f"/v1/sessions/{quote(name, '')}"

    def ask(self, event: str, **fields: Any) -> Any:
        """Return the answer to any event, by its name and the arguments of the method of `Scheduler`."""
        return self._client._json("POST", f"{self._path}/events", {"event": event, **fields})["answer"]

    def events(self, rows: Sequence[Row]) -> list[Row]:
        """Return the answers to several events, each with ``answer`` or ``error``."""
        found: list[Row] = parse_json(decoded(self._client.request("POST", f"{self._path}/events", list(rows))))
        return found

    def submit(self, job: str | Row, gpus: int | Sequence[int] | None = None, seconds: Any = None, **more: Any) -> None:
        """Let a job wait: its name and GPUs, or an object with the fields of `GangJob`."""
        given = {"gpus": gpus, "seconds": seconds}
        self.ask("submit", job=job, **{key: value for key, value in given.items() if value is not None}, **more)

    def finish(self, job: str, **more: Any) -> None:
        """Say that a job has ended."""
        self.ask("finish", job=job, **more)

    def decide(self, **more: Any) -> Decision:
        """Return who starts where and who stops: what a deadline cuts short is gone on with until all has started."""
        return whole(lambda: self._decide(**more))

    def _decide(self, **more: Any) -> Decision:
        row = self.ask("decide", **more)
        kinds: dict[str, Callable[..., Any]] = {"starts": Start, "stops": Stop, "mends": Mend, "stopping": Stopping}
        made = {name: tuple(kind(**_tuples(each)) for each in row.get(name, ())) for name, kind in kinds.items()}
        return Decision(**row | made | {"notes": tuple(row["notes"])})

    def state(self) -> Row:
        """Return who runs where and who waits."""
        return dict(self.ask("state"))

    def log(self) -> str:
        """Return the log."""
        return decoded(self._client.request("GET", f"{self._path}/log"))

    def close(self) -> None:
        """Close the scheduler; its log stays with the service."""
        self._client.request("DELETE", self._path)


class Solve:
    """A solve that the service has taken on.

    Attributes:
        name: its id.
        last: what the service said of it last.
    """

    def __init__(self, client: Client, said: Row) -> None:
        self._client, self.last, self.name = client, said, str(said["id"])

    def look(self) -> Row:
        """Return how it is."""
        self.last = self._client._json("GET", f"/v1/solves/{self.name}")
        return self.last

    def cancel(self) -> Row:
        """Have it end with the best plan so far."""
        self.last = self._client._json("DELETE", f"/v1/solves/{self.name}")
        return self.last

    def progress(self, after: int = 0) -> Iterator[Row]:
        """Yield what it finds, until it has ended."""
        connection = self._client._connect()
        try:
            path = f"{self._client._base}/v1/solves/{self.name}/progress?{urlencode({'after': after})}"
            connection.request("GET", path, headers=self._client._headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise ServiceError(answer.status, _error_in(answer.read()))
            kind = ""
            for line in iter(answer.readline, b""):
                name, _, text = decoded(line).rstrip("\n").partition(": ")
                kind = text if name == "event" else kind
                if name == "data" and kind == "end":
                    self.last = parse_json(text)
                elif name == "data":
                    yield parse_json(text)
        except (OSError, http.client.HTTPException) as error:
            raise ServiceError(0, {"field": "service", "problem": f"{type(error).__name__}: {error}"}) from None
        finally:
            connection.close()

    def result(self) -> Solved:
        """Return how it ended, once it has.

        Raises:
            ServiceError: if it failed.
        """
        while self.last["state"] in ("queued", "running"):
            for _ in self.progress():
                pass
        if "error" in self.last:
            raise ServiceError(200, self.last["error"])
        answer = self.last["answer"]
        plan = from_document(answer["plan"]) if answer.get("plan") else None
        return Solved(self.last["state"], answer.get("objective"), answer.get("bound"), plan, answer)


def _document(value: Any) -> Any:
    return value if isinstance(value, Mapping) else parse_json(dump(value))


def _tuples(row: Row) -> Row:
    nodes = {"nodes": {name: tuple(ids) for name, ids in row["nodes"].items()}} if "nodes" in row else {}
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()} | nodes


def _error_in(content: bytes) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = parse_json(decoded(content))["error"]
        return found
    except (InstanceError, KeyError, TypeError):
        return {"field": "answer", "problem": content[:200].decode("utf-8", "replace")}
