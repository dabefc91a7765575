"""A scheduler's state as JSON, and back."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.errors import brief, within
from gangplan.instances.placement import Fleet
from gangplan.instances.typed import STATE

from ..explaining.intervals import StartIntervals
from ..queueing.admission import check_known
from ..queueing.request import Request
from ..settings import SchedulerSettings, Sharing
from ..state import SchedulerState
from ..stopping.running_jobs import RunningJob

VERSION = 5
_USUAL = {"durations": "told", "grace": 0.0}
"""Settings of earlier versions that were not arguments yet."""
_HOW = "restore(snapshot, settings='keep' or 'mine') says whose hold"
_READ = (3, 4, VERSION)
"""Versions that can be read; 3 did not say when jobs are due, 4 had no terms."""
_DIGESTS: deque[tuple[Fleet, str]] = deque(maxlen=4)
"""The last clusters that were saved, and what tells them from others."""


def save(
    state: SchedulerState,
    faults: Mapping[str, int],
    count: int,
    intervals: StartIntervals,
    only: Container[str] | None = None,
) -> dict[str, Any]:
    """Return the state after `count` decisions: names, numbers, lists and dicts only.

    With `only` it is for a twin in this process, of these jobs among those that wait: jobs are objects, not rows.
    """
    waiting = [request for name, request in state.waiting.items() if only is None or name in only]
    names = dict.fromkeys(request.name for request in waiting)
    return {
        "gangplan": "scheduler",
        "version": VERSION,
        "settings": asdict(state.settings),
        "nodes": state.fleet.n_nodes,
        "gpus": state.fleet.n_gpus,
        "fleet": _digest(state.fleet),
        "now": state.now,
        "serial": state.serial,
        "decisions": count,
        "down": [node for node, up in enumerate(state.up) if not up],
        "waiting": [_saved(request) for request in waiting] if only is None else waiting,
        "running": [
            {
                "request": _saved(job.request),
                "degree": job.degree,
                "since": job.since,
                "end": job.end,
                "nodes": [[node, list(gpus)] for node, gpus in job.nodes.items()],
            }
            for job in state.running.values()
        ]
        if only is None
        else list(state.running.values()),
        "finished": list(state.finished),
        "promises": {name: time for name, time in state.promises.items() if name in names},
        "durations": state.estimates.save(),
        "shares": state.accounts.save(),
        "alike": state.alike,
        "faults": dict(faults),
        "intervals": (intervals if only is None else StartIntervals()).save(),
        **{name: asdict(of) for name, of in rules_of(state).items() if of is not None},
        **({"freed": freed} if (freed := {name: state.freed[name] for name in names if name in state.freed}) else {}),
        **state.later.save(only),
        **state.calendar.save(),
        **state.mending.save(),
        **state.notices.save(),
        **({} if state.learned is None else {"learned": state.learned.save()}),
        **({} if state.interference is None else {"weights": list(state.interference.recent)}),
    }


def _digest(fleet: Fleet) -> str:
    """Return what tells these nodes from others, for that is long to compute once only."""
    for known, digest in _DIGESTS:
        if known is fleet:
            return digest
    parts = (fleet.gpus, fleet.gpu_type, fleet.cpu, fleet.memory, fleet.labelled, *fleet.topology.group)
    text = repr((fleet.names, fleet.gpu_types, fleet.labels)).encode()
    digest = sha256(b"".join([text, *(np.ascontiguousarray(part).tobytes() for part in parts)])).hexdigest()
    _DIGESTS.append((fleet, digest))
    return digest


def _saved(request: Request) -> dict[str, Any]:
    row = asdict(request) | {"terms": request.terms.save()}
    usual = {name for name in ("types", "priced") if not row[name]} | ({"paid"} if row["paid"] is None else set())
    return {name: value for name, value in row.items() if name not in usual}


@contextmanager
def readable(field: str = "snapshot") -> Iterator[None]:
    """Have what goes wrong in a document inside be an error of this field, unless it names one itself."""
    try:
        yield
    except InstanceError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError, ArithmeticError) as error:
        raise InstanceError(field, f"is not what snapshot returned: {type(error).__name__}: {error}") from None


def load(document: Mapping[str, Any], state: SchedulerState, faults: dict[str, int], intervals: StartIntervals) -> int:
    """Enter a document into a state in which nothing has happened yet; return how many decisions there were.

    Raises:
        InstanceError: naming what of the document is wrong.
    """
    with readable(), within("snapshot"):
        count = _load(document, state, faults)
        if document["version"] == VERSION:
            intervals.load(document["intervals"], state)
        return count


def _load(document: Mapping[str, Any], state: SchedulerState, faults: dict[str, int]) -> int:
    _check_same(document, state)
    down = {state.node(node) for node in document["down"]}
    for node, up in enumerate(list(state.up)):
        if up == (node in down):
            state.turn(node, not up)
    state.calendar.load(document.get("windows", ()))
    if document["version"] == VERSION:
        state.alike = STATE.read(bool, document["alike"], "alike")
    for row in document["running"]:
        _run(state, row)
    for row in document["waiting"]:
        _wait(state, row)
    for name in STATE.read(tuple[str, ...], document["finished"], "finished"):
        state.over(name)
    state.mending.load(state, document.get("torn", ()))
    state.notices.load(state, document)
    if later := document.get("later"):
        state.later.load(state, later, [request_of(row["request"], state.settings) for row in later["held"]])
    promises = document["promises"] if document["version"] > 3 else {}
    for field, times, into in (
        ("promises", promises, state.promises), ("freed", document.get("freed", {}), state.freed)
    ):  # fmt: skip
        for name, time in STATE.read(dict[str, float], times, field).items():
            if name not in state.waiting:
                raise InstanceError(field, f"{name!r} does not wait")
            into[name] = time
    state.now = float(STATE.read(float, document["now"], "now"))
    state.serial, count = (STATE.read(int, document[field], field) for field in ("serial", "decisions"))
    state.accounts.load(document["shares"] if document["version"] == VERSION else [])
    state.accounts.now = state.now
    _learned(document, state)
    faults.update(STATE.read(dict[str, int], document["faults"], "faults"))
    return int(count)


def _wait(state: SchedulerState, row: Any) -> None:
    request = request_of(row, state.settings)
    if request is not row:
        check_known(state, request)
    state.wait(request)


def rules_of(state: SchedulerState) -> dict[str, Any]:
    """Return how slow places are, who waits for better ones and how the cluster is shared, `None` if as usual."""
    sharing = None if state.sharing == Sharing() else state.sharing
    return {"proximity": state.places and state.places.proximity, "patient": state.rule, "sharing": sharing}


def differences(theirs: Any, mine: Any, path: str = "") -> Iterator[str]:
    """Yield what differs between two values of JSON, in words: ``queues.a.share is 0.5, here 0.25``."""
    if isinstance(theirs, Mapping) and isinstance(mine, Mapping):
        for name in {**theirs, **mine}:
            yield from differences(theirs.get(name), mine.get(name), f"{path}.{name}" if path else str(name))
    elif theirs != mine:
        words = ["not given" if x is None else "given" if isinstance(x, Mapping) else repr(x) for x in (theirs, mine)]
        yield f"{path or 'it'} is {words[0]}, here {words[1]}"


def _check_same(document: Mapping[str, Any], state: SchedulerState) -> None:
    """Raise unless a document is of a scheduler of this version, cluster and arguments."""
    if not isinstance(document, Mapping) or "gangplan" not in document:
        raise InstanceError("", f"{brief(document)} is not what snapshot returned")
    if document.get("gangplan") != "scheduler" or document.get("version") not in _READ:
        raise InstanceError("version", f"{document.get('version')!r} of {document.get('gangplan')!r} cannot be read")
    for field, value in (("nodes", state.fleet.n_nodes), ("gpus", state.fleet.n_gpus)):
        if document[field] != value:
            raise InstanceError(field, f"{document[field]!r} where the cluster has {value}; resize exchanges nodes")
    if document.get("fleet") not in (None, _digest(state.fleet)):
        raise InstanceError("fleet", "it is of other nodes: restore it with those, then resize")
    settings = document["settings"]
    for field, value in asdict(state.settings).items():
        earlier = field not in settings and (document["version"] < VERSION or field == "max_wait")
        if not earlier and settings.get(field, _USUAL.get(field)) != value:
            raise InstanceError(f"settings.{field}", f"{next(differences(settings.get(field), value))}; {_HOW}")
    for field, of in rules_of(state).items():
        if document.get(field) != (mine := None if of is None else asdict(of)):
            some = [*differences(document.get(field), mine)]
            more = f" and {len(some) - 3} more" * (len(some) > 3)
            raise InstanceError(field, f"{', '.join(some[:3])}{more}; {_HOW}")


def _learned(document: Mapping[str, Any], state: SchedulerState) -> None:
    """Enter what was learned: how long jobs take, how fast they run, how much they weigh."""
    state.estimates.load(document["durations"] if "durations" in document else document["guess"])
    if (learned := document.get("learned")) is not None:
        from ..starting.learned_speeds import LearnedSpeeds

        state.learned = LearnedSpeeds.load(learned, state.fleet.n_nodes, state.running)
    if state.interference is not None:
        state.interference.recent.clear()
        state.interference.recent.extend(STATE.read(tuple[float, ...], document.get("weights", [1.0]), "weights"))


def _run(state: SchedulerState, row: Mapping[str, Any] | RunningJob) -> None:
    """Have a job run where it ran, once the verifier agrees."""
    if isinstance(row, RunningJob):
        state.put(row)
        return
    request = request_of(row["request"], state.settings)
    check_known(state, request)
    for field in ("since", "end"):
        require_number(row[field], f"running.{field}")
    if row["degree"] not in request.job.workers:
        words = f"{row['degree']!r} is not one of the numbers of workers of {request.name!r}"
        raise InstanceError("running.degree", words)
    degree, nodes = row["degree"], {node: tuple(gpus) for node, gpus in row["nodes"]}
    if wrong := state.wrong(request, degree, nodes):
        raise InstanceError("running", wrong[0])
    job = RunningJob(
        request, degree, row["since"], row["end"], nodes, state.slower(request, degree, nodes), state.sharing.least_run
    )
    state.wait(request)
    if not state.put(job):
        raise InstanceError("running", f"{request.name}: cores, memory or NIC are too few")


def request_of(row: Mapping[str, Any] | Request, settings: SchedulerSettings) -> Request:
    """Return the request that a row says, or that a twin has as it is."""
    if isinstance(row, Request):
        return row
    request = STATE.read(Request, row)
    if len(request.seconds) != len(request.job.workers):
        words = f"has {len(request.seconds)} entries for {len(request.job.workers)} numbers of workers"
        raise InstanceError("seconds", words)
    return request if "due" in row else replace(request, due=settings.due(request.submit, max(request.seconds)))
