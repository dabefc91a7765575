"""Follow an API server by list and watch, and carry out what the reconciler says."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from gangplan.instances.intake import decoded, parse_json

from .extender import Offers
from .objects import NODE, OBJECTS, KubeNode, Pod, ReadingRules, node_of, pod_of, size_of
from .reconciler import Actions, Reconciler

LOG = logging.getLogger("gangplan.kubernetes")
_PAGE, _WATCH, _ANSWER = 500, 300, 30.0
"""Objects in an answer to list; seconds of a watch; seconds in which an answer has to come."""
_RAW: dict[str, Any] = {"_preload_content": False, "_request_timeout": _ANSWER}
"""Ask for the raw answer: a binding is answered by a status, which the client cannot read."""
_PAUSE = 0.2, 30.0
"""Seconds before the first retry, and at most."""
_TOGETHER, _AGAIN, _LATEST = 0.05, 1.0, 30.0
"""Seconds in which news is gathered; until what failed is tried again; until a step at the latest."""
_REFUSED = 400, 401, 403, 422
"""Statuses of what no news changes, as those do of a pod that is gone or bound."""

News = queue.SimpleQueue[tuple[str, str, Any] | None]


class Server:
    """An API server.

    Args:
        api: a client that is configured, of the official package.
    """

    def __init__(self, api: client.ApiClient) -> None:
        self._core = client.CoreV1Api(api)
        custom = client.CustomObjectsApi(api).list_cluster_custom_object
        self._lists: dict[str, Callable[..., Any]] = {
            "pods": self._core.list_pod_for_all_namespaces, "nodes": self._core.list_node,
            **{kind: partial(custom, *group, kind) for kind, group in OBJECTS.items()},
        }  # fmt: skip

    def list(self, kind: str) -> tuple[list[dict[str, Any]], str]:
        """Return all pods or nodes, and the version from which to watch them."""
        items, more = list[dict[str, Any]](), dict[str, str]()
        while True:
            answer = self._lists[kind](limit=_PAGE, **_RAW, **more)
            page = parse_json(decoded(answer.data))
            items += page.get("items") or []
            if not (token := page["metadata"].get("continue")):
                return items, page["metadata"]["resourceVersion"]
            more = {"_continue": token}

    def watch(self, kind: str, version: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what happens after a version, until the server ends it.

        Raises:
            ApiException: with status 410 if the version is too old.
        """
        answer = self._lists[kind](
            watch=True, resource_version=version, allow_watch_bookmarks=True, timeout_seconds=_WATCH,
            _preload_content=False, _request_timeout=(_ANSWER, _WATCH + _ANSWER),
        )  # fmt: skip
        try:
            rest = b""
            for part in answer.stream(amt=None, decode_content=False):
                *lines, rest = (rest + part).split(b"\n")
                for line in filter(None, lines):
                    row = parse_json(decoded(line))
                    if row["type"] == "ERROR":
                        raise ApiException(row["object"].get("code", 500), row["object"].get("message", ""))
                    yield row["type"], row["object"]
        finally:
            answer.close()

    def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod; the server refuses it if there is another of its name by now."""
        space, _, name = pod.key.partition("/")
        target = client.V1ObjectReference(api_version="v1", kind="Node", name=node)
        body = client.V1Binding(metadata=client.V1ObjectMeta(name=name, namespace=space, uid=pod.uid), target=target)
        self._core.create_namespaced_pod_binding(name, space, body, **_RAW).read()

    def offer(self, pod: Pod, node: str) -> None:
        """Note on a pod where it may go, so that kube-scheduler, which had put it off, asks again."""
        space, _, name = pod.key.partition("/")
        body = {"metadata": {"uid": pod.uid, "annotations": {NODE: node}}}
        self._core.patch_namespaced_pod(name, space, body, **_RAW).read()

    def evict(self, pod: Pod) -> None:
        """Delete a pod whose GPUs another is to have; the server refuses it if it is another pod by now.

        As kube-scheduler does, say so in a condition first, which policies of jobs read; the pod has the time that it
        asks for to end.
        """
        space, _, name = pod.key.partition("/")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        why = {"reason": "PreemptionByScheduler", "message": "gangplan: it gives way", "lastTransitionTime": now}
        self._condition(pod.key, {"type": "DisruptionTarget", "status": "True", **why}, uid=pod.uid)
        body = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=pod.uid))
        self._core.delete_namespaced_pod(name, space, body=body, **_RAW).read()

    def explain(self, key: str, why: str) -> None:
        """Say of a pod why it waits, in the condition that autoscalers read too."""
        reason = {"reason": "Unschedulable", "message": f"gangplan: {why}"}
        self._condition(key, {"type": "PodScheduled", "status": "False", **reason})

    def _condition(self, key: str, condition: dict[str, str], **meta: str) -> None:
        space, _, name = key.partition("/")
        body = {"metadata": meta, "status": {"conditions": [condition]}}
        self._core.patch_namespaced_pod_status(name, space, body, **_RAW).read()


def _follow(server: Server, kind: str, news: News, ended: threading.Event) -> None:
    """Put what happens to pods or nodes into a queue: everything, then changes, everything anew where some are lost."""
    version, pause = "", _PAUSE[0]
    while not ended.is_set():
        try:
            if not version:
                items, version = server.list(kind)
                news.put(("LIST", kind, items))
            for what, item in server.watch(kind, version):
                version, pause = item["metadata"]["resourceVersion"], _PAUSE[0]
                if what != "BOOKMARK":
                    news.put((what, kind, item))
        except ApiException as error:
            if error.status != 429:  # too old, or later than a server knows that was restored
                version = ""
            if absent := kind in OBJECTS and error.status in (403, 404):  # the cluster has none, or none to show
                news.put(("LIST", kind, []))
                pause = _PAUSE[1]
            level = logging.DEBUG if absent else logging.WARNING
            LOG.log(level, "%s: watched anew: %s %s", kind, error.status, error.reason)
        except (HTTPError, OSError, ValueError, KeyError) as error:
            LOG.warning("%s: watched anew: %s", kind, error)
        ended.wait(pause)
        pause = min(2 * pause, _PAUSE[1])


class FollowLoop:
    """Schedule until told to end.

    Args:
        server: the API server.
        reconciler: decides.
        rules: how pods and nodes are read.
        offers: where decisions are left for kube-scheduler, which binds the pods then; without it they are bound here.
    """

    def __init__(
        self, server: Server, reconciler: Reconciler, rules: ReadingRules, offers: Offers | None = None
    ) -> None:
        self._server, self._reconciler, self._offers = server, reconciler, offers
        self._news: News = queue.SimpleQueue()
        self._ended = threading.Event()
        self._pods, self._nodes, self._listed = dict[str, Pod](), dict[str, KubeNode](), set[str]()
        self._sizes: dict[str, dict[str, int]] = {kind: {} for kind in OBJECTS}
        self._known: dict[str, dict[str, Any]] = {"pods": self._pods, "nodes": self._nodes, **self._sizes}
        self._readers: dict[str, Callable[[Any], Any]] = {kind: partial(size_of, kind) for kind in OBJECTS}
        self._readers |= {"pods": partial(pod_of, rules=rules), "nodes": partial(node_of, rules=rules)}
        self._said: dict[str, str] = {}

    def end(self, *_: object) -> None:
        """End soon; a signal may call it."""
        self._ended.set()
        self._news.put(None)

    def run(self) -> None:
        """Follow the server, and make a step whenever something has happened."""
        for kind in ("pods", "nodes", *OBJECTS):
            given = self._server, kind, self._news, self._ended
            threading.Thread(target=_follow, args=given, daemon=True).start()
        due = 0.0
        with ThreadPoolExecutor(8) as threads:
            while not self._ended.is_set():
                heard = self._heard(max(_TOGETHER, due - time.monotonic()))
                if not {"pods", "nodes"} <= self._listed or not (heard or time.monotonic() >= due):
                    continue
                wait = _LATEST if self._step(threads) else _AGAIN
                if (wake := self._reconciler.wake) is not None:
                    wait = min(wait, max(0.0, wake - time.time()))
                due = time.monotonic() + wait

    def _heard(self, wait: float) -> bool:
        """Take in news, if there is some in time, and what comes soon after; return whether it changes anything."""
        changed, until = False, time.monotonic() + wait
        while (left := until - time.monotonic()) > 0:
            try:
                row = self._news.get(timeout=left)
            except queue.Empty:
                break
            if row is None:
                break
            if self._note(*row) and not changed:
                changed, until = True, time.monotonic() + _TOGETHER
        return changed

    def _note(self, what: str, kind: str, item: Any) -> bool:
        known = self._known[kind]
        before = dict(known) if what == "LIST" else {}
        if what == "LIST":
            known.clear()
            self._listed.add(kind)
        for each in item if what == "LIST" else [item]:
            meta = each["metadata"]
            name = meta["uid"] if kind == "pods" else meta["name"]
            name = f"{meta['namespace']}/{name}" if kind in OBJECTS else name
            if name in known:
                before[name] = known.pop(name)
            elif kind == "pods" and name not in before:  # nothing was said of it, but perhaps of one of its name
                self._said.pop(f"{meta['namespace']}/{meta['name']}", None)
            try:
                if what != "DELETED":
                    known[name] = self._readers[kind](each)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                LOG.warning("%s %s is left out: %s: %s", kind, each["metadata"]["name"], type(error).__name__, error)
            if what != "LIST":
                return before.get(name) != known.get(name)
        return True

    def _step(self, threads: ThreadPoolExecutor) -> bool:
        """Make a step, and return whether all of it could be done."""
        step = self._reconciler.step(self._pods, self._nodes, time.time(), self._sizes)
        act = self._server.bind
        if self._offers is not None:
            act, step.binds = self._server.offer, self._offers.renew(step.binds, step.waits)
        tasks = [threads.submit(self._try, self._server.evict, pod) for pod in step.evicts]
        tasks += [threads.submit(self._try, act, pod, node) for pod, node in step.binds]
        failed = [task.result() for task in tasks]
        refused = failed[len(step.evicts) :]
        if tasks:
            LOG.info("%s: %d of %d pods; %d evicted", act.__name__, refused.count(None), len(refused), len(step.evicts))
        step.waits |= {x.key: f"{act.__name__}: {why}" for (x, _), why in zip(step.binds, refused, strict=True) if why}
        return self._tell(step, threads) and failed.count(None) == len(failed) and step.all

    def _tell(self, step: Actions, threads: ThreadPoolExecutor) -> bool:
        news = {key: why for key, why in step.waits.items() if self._said.get(key) != why}
        self._said = step.waits
        if self._offers is not None:
            return True  # kube-scheduler says it
        failed = [*threads.map(lambda row: self._try(self._server.explain, *row), news.items())]
        for key in [key for key, why in zip(news, failed, strict=True) if why is not None]:
            del self._said[key]  # and say it at the next step
        return "" not in failed

    def _try(self, act: Callable[..., None], *given: Any) -> str | None:
        """Return nothing if it is done, why the server will not have it, "" if it may later."""
        try:
            act(*given)
            return None
        except ApiException as error:
            LOG.warning("%s %s: %s %s", act.__name__, _name(given[0]), error.status, _message(error))
            return _message(error) if error.status in _REFUSED else ""
        except (HTTPError, OSError) as error:
            LOG.warning("%s %s: %s", act.__name__, _name(given[0]), error)
        return ""


Loop = FollowLoop
"""Its name up to release 0.2.1, for one more."""


def _name(pod: Pod | str) -> str:
    return pod if isinstance(pod, str) else pod.key


def _message(error: ApiException) -> str:
    try:
        return str(parse_json(str(error.body or "{}")).get("message", error.reason))
    except (ValueError, AttributeError):
        return str(error.reason)
