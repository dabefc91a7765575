"""A scheduler's state as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob

from .book import Stint
from .desk import Desk
from .guard import Guard
from .job import Request
from .lookahead import Lookahead

VERSION = 3


def save(desk: Desk, ahead: Lookahead | None, guard: Guard, count: int) -> dict[str, Any]:
    """Return the state: names, numbers, lists and dicts only."""
    book, fleet = desk.book, desk.book.fleet
    return {
        "gangplan": "scheduler",
        "version": VERSION,
        "settings": asdict(desk.settings),
        "nodes": fleet.n_nodes,
        "gpus": fleet.n_gpus,
        "now": book.now,
        "serial": book.serial,
        "decisions": count,
        "down": [node for node, up in enumerate(book.up) if not up],
        "waiting": [asdict(request) for request in book.waiting.values()],
        "running": [_stint(stint) for stint in book.running.values()],
        "finished": sorted(book.finished),
        "guess": desk.guess.state(),
        "faults": dict(guard.faults),
        "lookahead": None if ahead is None else _ahead(ahead),
    }


def _stint(stint: Stint) -> dict[str, Any]:
    nodes = [[node, list(gpus)] for node, gpus in stint.nodes.items()]
    plain = {"degree": stint.degree, "since": stint.since, "end": stint.end, "nodes": nodes}
    return {"request": asdict(stint.request), **plain}


def _ahead(ahead: Lookahead) -> dict[str, Any]:
    return {
        "past": [list(job) for job in ahead.past],
        "told": [list(means) for means in ahead.told],
        "rounds": ahead.rounds,
        "best": ahead.best,
        "seen": ahead.seen,
        "due": ahead.seen if ahead.found else ahead.due,
        "window": ahead.window,
    }


def load(document: Mapping[str, Any], desk: Desk, ahead: Lookahead | None, guard: Guard) -> int:
    """Enter a state into a desk on which nothing has happened yet; return how many decisions there were.

    A round of the lookahead that had begun begins anew.

    Raises:
        InstanceError: naming what of the document is wrong.
    """
    try:
        _whole(document, desk.book.fleet)
        return _load(document, desk, ahead, guard)
    except InstanceError as error:
        raise error.within("snapshot") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError) as error:
        raise InstanceError("snapshot", f"is not what snapshot returned: {type(error).__name__}: {error}") from None


def _whole(document: Mapping[str, Any], fleet: Fleet) -> None:
    if document.get("gangplan") != "scheduler" or document.get("version") != VERSION:
        raise InstanceError("version", f"{document.get('version')!r} of {document.get('gangplan')!r} cannot be read")
    for field, value in (("nodes", fleet.n_nodes), ("gpus", fleet.n_gpus)):
        if document[field] != value:
            raise InstanceError(field, f"{document[field]!r} where the cluster has {value}")


def _load(document: Mapping[str, Any], desk: Desk, ahead: Lookahead | None, guard: Guard) -> int:
    book = desk.book
    up = {node for node, is_up in enumerate(book.up) if is_up}
    for node in document["down"]:
        book.node(node)
    for node in up & set(document["down"]):
        desk.fail(node, None)
    for node in set(range(len(book.up))) - up - set(document["down"]):
        desk.repair(node, None)
    for row in document["running"]:
        request = _request(row["request"])
        nodes = {node: tuple(gpus) for node, gpus in row["nodes"]}
        desk.enter(Stint(request, row["degree"], row["since"], row["end"], nodes))
    for row in document["waiting"]:
        desk.wait(_request(row))
    book.finished.update(document["finished"])
    book.now, book.serial = float(document["now"]), int(document["serial"])
    desk.guess.load(document["guess"])
    guard.faults.update(document["faults"])
    found = document["lookahead"]
    if ahead is not None and found is not None:
        ahead.past.extend([float(t), int(g), float(s), int(i)] for t, g, s, i in found["past"])
        ahead.told = [[float(mean) for mean in means] for means in found["told"]]
        ahead.rounds, ahead.best, ahead.seen = found["rounds"], found["best"], found["seen"]
        ahead.due, ahead.window = found["due"], found["window"]
        if len(ahead.told) not in (0, len(ahead.shares)) or not 0 <= ahead.best < len(ahead.shares):
            raise InstanceError("lookahead.told", f"are {len(ahead.told)} for {len(ahead.shares)} shares")
    return int(document["decisions"])


def _request(row: Mapping[str, Any]) -> Request:
    job = dict(row["job"])
    for part in ("worker", "server"):
        job[part] = Demand(**job[part])
    rest = {key: value for key, value in row.items() if key not in ("job", "seconds")}
    return Request(job=GangJob(**job), seconds=tuple(row["seconds"]), **rest)
