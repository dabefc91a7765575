"""A process that solves or verifies: its request a line of JSON on stdin, progress and answer lines on stdout.

When stdin ends, whether a solve is cancelled or the process that asked is gone, the search ends with what there is.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any, BinaryIO

from gangplan.instances import InstanceError, verify
from gangplan.instances.certificates import verify_bound
from gangplan.instances.documents import from_document
from gangplan.instances.errors import brief, did_you_mean, within
from gangplan.instances.intake import decoded, parse_json

SOLVE = ("problem", "time_limit", "method", "seed", "workers", "gap", "objective", "initial", "certify")
_VERIFY = ("problem", "plan", "certificate")
_OFTEN = 0.1
"""Seconds between two lines about bounds alone."""
_LEAVE = 10.0
"""Seconds that a cancelled solve may take to end."""


def main() -> None:
    """Read a request, answer it, end."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    from gangplan.hybrid import solve  # noqa: F401  # while nobody waits

    line = sys.stdin.buffer.readline()
    if not line:
        return
    request = parse_json(decoded(line))
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"],) * 2)
    try:
        threading.Thread(target=_watch, daemon=True).start()
        work = {"solve": _solve, "verify": _verify, "picture": _picture, "replay": _replay}[request["work"]]
        answer = {"answer": work(request["body"], out)}
    except InstanceError as error:
        answer = {"error": {"field": error.field, "problem": error.problem}}
    except KeyboardInterrupt:
        answer = {"error": {"field": request["work"], "problem": "was cancelled before there was an answer"}}
    except MemoryError:
        answer = {"error": {"field": "memory", "problem": f"more than {request['memory']} bytes are needed"}}
    except Exception as error:
        problem = f"failed: {type(error).__name__}: {brief(str(error))}"
        answer = {"error": {"field": request["work"], "problem": problem}}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError):  # who asked was killed
        _say(out, answer)


def _watch() -> None:
    """Interrupt the solve when nobody wants it any more."""
    while os.read(0, 1):
        pass
    for _ in range(2):  # first the search, then looking for a certificate
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(_LEAVE / 2)
    os._exit(1)


def _say(out: BinaryIO, row: dict[str, Any]) -> None:
    out.write(json.dumps(row, allow_nan=False).encode() + b"\n")
    out.flush()


def checked_request(body: Any, known: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Any]:
    """Return what a request says, with the documents in it read."""
    if not isinstance(body, dict):
        raise InstanceError("body", f"{brief(body)} is no object")
    for name, value in body.items():
        if name not in known:
            raise InstanceError(name, f"{brief(value)} is no field{did_you_mean(name, known)}")
    for name in needed:
        if body.get(name) is None:
            raise InstanceError(name, "is missing")
    given = {name: value for name, value in body.items() if value is not None}
    for name in ("problem", "plan", "initial"):
        if name in given:
            with within(name):
                given[name] = from_document(given[name])
    return given


def _solve(body: Any, out: BinaryIO) -> Any:
    from gangplan.hybrid import solve

    from ..cli.report import as_data

    given, told = checked_request(body, SOLVE, ("problem", "time_limit")), [0, 0.0]
    certify = given.get("certify", False)
    if not isinstance(certify, bool):
        raise InstanceError("certify", f"{brief(certify)} is not true or false")
    for name in ("method", "objective"):
        if not isinstance(given.get(name, ""), str):
            raise InstanceError(name, f"{brief(given[name])} is not text")

    def report(run: Any) -> None:
        if not told[0] and threading.current_thread() is threading.main_thread():
            # an exception may get lost where native code calls back
            signal.signal(signal.SIGINT, lambda *_: _stop(run, certify))
        now, plans = run.seconds(), len(run.trace)
        if plans > told[0] or now > told[1] + _OFTEN:
            by = run.trace[-1].by if plans > told[0] else "bound"
            told[:] = plans, now
            state = {"seconds": now, "objective": run.objective, "bound": run.bound, "gap": run.gap, "by": by}
            _say(out, {"progress": state})

    return as_data(solve(given.pop("problem"), callbacks=[report], **given))


def _picture(body: Any, _: BinaryIO) -> Any:
    from .pictures import PICTURE, cluster_picture, picture_of

    if isinstance(body, dict) and "cluster" in body:
        return cluster_picture(body)
    return picture_of(checked_request(body, PICTURE, ("problem", "plan")))


def _replay(body: Any, _: BinaryIO) -> Any:
    from .pictures import frames_of

    return frames_of(checked_request(body, ("log",), ("log",)))


def _stop(run: Any, certify: bool) -> None:
    run.stop_reason = run.stop_reason or "interrupted"
    if certify:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _verify(body: Any, _: BinaryIO) -> Any:
    from ..cli.plans import as_found

    given = checked_request(body, _VERIFY, ("problem", "plan"))
    problem, proof = given["problem"], given.get("certificate")
    verdict = verify(problem, given["plan"])
    return as_found(problem, verdict, None if proof is None else float(verify_bound(problem, proof)))


if __name__ == "__main__":
    main()
