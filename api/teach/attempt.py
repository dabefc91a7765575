"""The process that `gangplan.teach.confined` starts: a watcher, and its child, which does the work.

A request, JSON on stdin, has `work`: "solve" or "prove" calls that function of a student's `file` with the `problem`;
"judge" has the verifier look at a `plan`, or the checker of bounds at a `certificate`. Answers are lines of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from select import select
from typing import Any

from gangplan.hybrid.bench.leftovers import descendants, end, subreaper
from gangplan.instances import InstanceError, verify
from gangplan.instances.intake import parse_json
from gangplan.instances.kinds import PLANS
from gangplan.solvers.processes import Child

from .confined import START
from .imports import restrict
from .isolation import enter, settle

_POLL = 0.02
_PRICES: dict[str, dict[str, Any]] = {"covers": {"threshold": "0", "steps": 10**6}, "starts": {"steps": 0}}
"""What makes a certificate with prices one of prices alone, by argument."""
_TIME, _MEMORY, _PROCESSES, _NO_ANSWER = 70, 71, 72, 73
"""Exit codes, see `gangplan.teach.confined.FAULTS`."""


def main() -> int:
    """Do what the request says in a child, watch it, end all that it started."""
    request = parse_json(sys.stdin.read())
    limits, out = request["limits"], request["answer"]
    if request["namespaces"]:
        enter(request["hidden"])
    else:
        subreaper()
    inbox, outbox = os.pipe()
    child = Child(lambda: _confine(request, out, outbox))
    os.close(outbox)
    ready, late, code = False, time.perf_counter() + START, 0
    try:
        while child.alive() and not code:
            if ready:
                time.sleep(_POLL)
            elif select([inbox], [], [], _POLL)[0]:  # the child has closed its end, for good
                ready, late = True, time.perf_counter() + limits["seconds"]
            family = descendants(os.getpid())
            if time.perf_counter() > late:
                code = _TIME
            elif sum(family.values()) > limits["memory"]:
                code = _MEMORY
            elif len(family) > limits["processes"]:
                code = _PROCESSES
    finally:
        child.kill()
        end(lambda: descendants(os.getpid()))
    return code or (_NO_ANSWER if child.exitcode else 0)


def _confine(request: dict[str, Any], out: int, outbox: int) -> None:
    """Do the work within limits and write what comes of it; `outbox` is closed when its time begins."""
    limits = request["limits"]
    if request["namespaces"]:
        settle()
    for kind, most in ((resource.RLIMIT_FSIZE, limits["output"]), (resource.RLIMIT_DATA, limits["memory"]),
                       (resource.RLIMIT_CORE, 0)):  # fmt: skip
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (int(most), int(most)))
    work = {"solve": _call, "prove": _call, "judge": _judge}[request["work"]]
    try:
        for row in work(request, lambda: os.close(outbox)):
            _say(out, row)
    except MemoryError:
        _say(out, {"error": f"needed more than {limits['memory']:.3g} bytes of memory"})
    except SystemExit as error:
        _say(out, {"error": f"called sys.exit({error.code!r:.40})"})
    except BaseException as error:
        _say(out, {"error": f"{type(error).__name__}: {_text(error)}"})


def _say(out: int, row: dict[str, Any]) -> None:
    text = json.dumps(row, allow_nan=False).encode() + b"\n"
    while text:
        text = text[os.write(out, text) :]


def _text(error: BaseException) -> str:
    """Return the message of an error of a student's making, which may have none that can be had."""
    try:
        where, trace = "", error.__traceback__
        while trace:
            name = Path(trace.tb_frame.f_code.co_filename).name
            where = f" (line {trace.tb_lineno})" if name == "solve.py" else where
            trace = trace.tb_next
        return f"{str(error)[:300]}{where}"
    except BaseException:
        return "no message"


def _call(request: dict[str, Any], begin: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """Yield the document that the student's function returns."""
    from gangplan.instances.documents import dump, from_document

    problem = from_document(request["problem"])
    begin()
    file, name = request["file"], request["work"]
    restrict(tuple(request["imports"]), Path(file).parent, request["hidden"])
    sys.path.insert(0, str(Path(file).parent))
    spec = spec_from_file_location("submission", file)
    assert spec and spec.loader
    module = sys.modules["submission"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if function is None:
        if name == "solve":
            yield {"error": f"solve.py has no function {name}(problem)"}
        return
    begun = time.perf_counter()
    found = function(problem)
    seconds = time.perf_counter() - begun
    found = getattr(found, "plan" if name == "solve" else "certificate", found)  # what gangplan.solve returns has both
    if found is None:
        yield {"error": f"{name} returned None"}
    elif name == "prove" or isinstance(found, dict):
        yield {"document": found, "seconds": seconds}
    else:
        yield {"document": json.loads(dump(found)), "seconds": seconds}


def _judge(request: dict[str, Any], begin: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """Yield what verifier or checker say: a plan's objective, or bounds of a certificate, the best last."""
    from gangplan.instances.documents import from_document

    begin()
    problem = from_document(request["problem"])
    try:
        if "certificate" in request:
            yield from _bounds(problem, request["certificate"])
            return
        plan = from_document(request["plan"])
        if not isinstance(plan, PLANS[problem.objective]):
            raise InstanceError("plan", f"is a {type(plan).__name__}, not of a problem of {problem.objective}")
        verdict = verify(problem, plan)
        row = {"objective": verdict.objective, "violations": [str(x)[:300] for x in verdict.violations[:5]]}
        yield row | ({} if verdict.objective is None else {"picture": _picture(problem, plan)})
    except InstanceError as error:
        yield {"error": str(error)}


def _bounds(problem: Any, certificate: Any) -> Iterator[dict[str, Any]]:
    """Yield what the prices of a certificate prove without its search, which may be long, then what it proves."""
    from gangplan.instances.certificates import verify_bound

    alone = _PRICES.get(str(certificate.get("argument"))) if isinstance(certificate, dict) else None
    for each in ([certificate | alone] if alone else []) + [certificate]:
        yield {"bound": min(float(verify_bound(problem, each)), sys.float_info.max)}


def _picture(problem: Any, plan: Any) -> str:
    """Return the picture of a plan as SVG, an empty text if none can be drawn."""
    from ..plot import picture
    from ..plot.svg import draw

    with suppress(Exception):
        return draw(picture(problem, plan))
    return ""


if __name__ == "__main__":
    sys.exit(main())
