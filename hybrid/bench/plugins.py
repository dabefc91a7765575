"""Solvers of others: each works in a process that has the problem and nothing else of the benchmark.

A server loads the solver, from a copy of the package without plans, certificates and manifest, and solves in forks. It
says what it finds in JSON, which counts from when it arrives.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import entry_points
from importlib.util import find_spec
from math import ceil
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from threading import Timer
from typing import Any

from gangplan.instances import InstanceError, dump, load
from gangplan.instances.arrays import require_choice, require_number
from gangplan.instances.documents import from_document
from gangplan.instances.errors import extra
from gangplan.instances.intake import parse_json, read_bytes
from gangplan.instances.torch_model.load import find_object
from gangplan.instances.verify import Problem
from gangplan.solvers.method import OBJECTIVES, suite
from gangplan.solvers.processes import forked
from gangplan.solvers.run import Run

from ..server import command, fork_only
from ..solve import solve
from ..table import ENTRIES, import_libraries
from .leftovers import descendants, end, subreaper
from .rows import FAILED, ONLINE, SKIPPED

GROUP = "gangplan_bench"
"""The entry points of packages that bring a solver."""
_LATE, _LATEST = 0.25, 2.0
"""A solve may overrun its deadline by this share of it, and so many seconds, before it is killed."""
_GRACE = 5.0
"""Seconds after that in which a server must have said so."""
_PARTS = ("", "instances", "solvers", "simulator", "learned", "scheduler", "systems", "hybrid")
"""Of the package."""
ENDED, KILLED = "its process ended: a crash, or a limit", "did not stop in time and was killed"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A solver of others.

    Attributes:
        name: of the function, or of the file without its ending.
        place: see `introduced`, with a whole path.
        objectives: that it declares as its own; none means all.
    """

    name: str
    place: str
    objectives: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """A digest of its file, if it is one."""
        path = Path(self.place.partition(":")[0])
        return sha256(read_bytes(path)).hexdigest()[:12] if path.is_file() else ""


def ours(objective: str, name: str) -> bool:
    """Return whether a method comes with gangplan: only its bounds go into a ledger."""
    own = {*suite(objective).methods, *(entry.name for entry in ENTRIES if entry.objective == objective), "auto"}
    return name in own


def patience(deadline: float) -> float:
    """Return the seconds after which a solve is killed."""
    return deadline * (1 + _LATE) + _LATEST


def introduced(plugin: str) -> Plugin:
    """Ask a solver of others for its name and the objectives that it declares, without loading it here.

    Args:
        plugin: ``file.py:function``, ``module:function``, the name of an entry point of the group ``gangplan_bench``,
            or an executable, with ``:objective,objective`` if it declares some. The function takes a `Run` and offers
            plans on it, or returns one, or None if it has none; of a problem that is not for it, it raises
            `NotImplementedError`; its attribute ``objectives``, a tuple, declares which are its own.
    """
    path, _, own = plugin.partition(":")
    place, declared = plugin, tuple[str, ...]()
    if _executable(path) and not (own and path.endswith(".py")):
        place, declared = str(Path(path).resolve()), tuple(filter(None, own.split(",")))
    elif own and (path.endswith(".py") or os.sep in path):
        place = f"{Path(path).resolve()}:{own}"
    hello = _server(place).hello
    if "error" in hello:
        raise InstanceError("plugin", hello["error"])
    found = Plugin(hello["name"], place, declared or tuple(hello["objectives"]))
    for name in found.objectives:
        require_choice(name, "plugin.objectives", (*OBJECTIVES, ONLINE))
    if any(ours(objective, found.name) for objective in OBJECTIVES):
        raise InstanceError("plugin", f"{found.name!r} is the name of a method of gangplan")
    return found


def ask(plugin: Plugin, problem: Problem, asked: Mapping[str, Any]) -> tuple[list[tuple[float, Any]], dict[str, Any]]:
    """Have a solver of others solve a problem in a process of its own.

    Args:
        plugin: the solver.
        problem: the problem.
        asked: ``time_limit``, ``seed`` and ``workers`` as `gangplan.solve` takes them; bytes of ``memory`` and ``cpu``
            seconds that its process may take, None for no limit.

    Returns:
        Documents of plans, and ``bound`` with a number, each with the second at which it arrived; and of the solve
        ``seconds``, ``cpu``, ``memory``, ``notes``, and ``status`` if it was skipped or failed.
    """
    server, said, began = _server(plugin.place), list[tuple[float, Any]](), time.perf_counter()
    try:
        server.line.send_bytes(json.dumps(asked).encode())
        server.line.send_bytes(dump(problem).encode())
        server.hear(None)  # it has loaded the problem and what solves it
        began = time.perf_counter()
        until = began + patience(asked["time_limit"]) + _GRACE
        while "end" not in (heard := server.hear(until)):
            said.append((round(time.perf_counter() - began, 4), heard))
        told = _told(**heard["end"])
    except BaseException as error:
        server.kill()
        if not isinstance(error, OSError | EOFError | InstanceError):
            raise
        told = {"status": FAILED, "notes": KILLED if isinstance(error, TimeoutError) else ENDED}
    return said, {"seconds": round(time.perf_counter() - began, 4), **told}


def _told(cpu: float, notes: str, memory: float = 0.0, status: str = "") -> dict[str, Any]:
    """Return what a server says of a solve, and nothing that its solver may have said in its stead."""
    require_number(cpu, "cpu")
    require_number(memory, "memory")
    told: dict[str, Any] = {"cpu": cpu, "memory": memory, "notes": str(notes)[:300]}
    return told | {"status": SKIPPED if status == SKIPPED else FAILED} if status else told


class _PluginProcess:
    """The process that has loaded a solver, as its caller has it."""

    def __init__(self, place: str) -> None:
        tree = _tree()
        path = [str(tree), *(x for x in map(str, sys.path) if x not in ("", os.getcwd()))]
        path += [os.getcwd()] * (":" in place and os.sep not in place)
        self.line, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                command("bench.plugins", place, str(theirs.fileno()), path=path), pass_fds=[theirs.fileno()],
                start_new_session=True, cwd=tree.with_name("work"), stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(tree)},
            )  # fmt: skip
        atexit.register(self.kill)
        self.hello: Any = {"error": f"{place!r} cannot be loaded: {ENDED}"}
        with suppress(EOFError, OSError):
            self.hello = self.hear(None)

    def hear(self, until: float | None) -> Any:
        """Return what it says next; TimeoutError after `until`."""
        if not self.line.poll(None if until is None else max(0.0, until - time.perf_counter())):
            raise TimeoutError
        return parse_json(self.line.recv_bytes().decode())

    def kill(self) -> None:
        """End it."""
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


_servers: dict[str, _PluginProcess] = {}


def _server(place: str) -> _PluginProcess:
    if place not in _servers or _servers[place].process.poll() is not None:
        _servers[place] = _PluginProcess(place)
    return _servers[place]


@cache
def _tree() -> Path:
    """Return a copy of the package without what is known of the benchmark; beside it is an empty folder to work in."""
    home = Path(tempfile.mkdtemp(prefix="gangplan-bench-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "work").mkdir()
    for name in _PARTS:
        spec = find_spec(f"gangplan.{name}".rstrip("."))
        source, target = Path(str(spec and spec.origin)).parent, home / "tree" / "gangplan" / name
        shutil.copytree(source, target, ignore=_known, dirs_exist_ok=True)
    return home / "tree"


def _known(folder: str, names: list[str]) -> set[str]:
    return {"bench": {"library", "manifest.jsonl"}}.get(Path(folder).name, set())


def main() -> None:
    """Load the solver in ``sys.argv[2]``, say who it is, and solve what the connection in ``sys.argv[3]`` asks for."""
    place, line, loaded = sys.argv[2], Connection(int(sys.argv[3])), set[str]()
    name = Path(place).stem if _executable(place) else place.rpartition(":")[2]
    try:
        solver = partial(_run, place) if _executable(place) else function_of(place)
    except InstanceError as error:
        line.send_bytes(json.dumps({"error": error.problem}).encode())
        return
    line.send_bytes(json.dumps({"name": name, "objectives": getattr(solver, "objectives", ())}).encode())
    subreaper()
    while True:
        try:
            asked, problem = parse_json(line.recv_bytes().decode()), load(line.recv_bytes().decode())
        except EOFError:
            return
        if problem.objective not in loaded and not _executable(place):
            prepare(problem.objective)
            loaded.add(problem.objective)
        before = children()
        line.send_bytes(b"{}")
        until = time.perf_counter() + patience(asked["time_limit"])
        told = attempted(partial(_attempt, solver, name, problem, line, **asked), until)
        end(lambda: descendants(os.getpid()))  # who was left behind
        _collect()
        line.send_bytes(json.dumps({"end": {"cpu": round(children() - before, 4), **told}}).encode())


def attempted(work: Callable[[], Any], until: float) -> Any:
    """Return what work in a process of its own returns; if it does not, status and notes of a row."""
    try:
        found = forked(work, lambda: time.perf_counter() > until)
    except NotImplementedError as error:
        return {"status": getattr(error, "status", SKIPPED), "notes": str(error)[:300]}
    except Exception as error:
        return {"status": FAILED, "notes": f"{type(error).__name__}: {error}"[:300]}
    late = time.perf_counter() > until
    return {"status": FAILED, "notes": KILLED if late else ENDED} if found is None else found


def _attempt(
    solver: Any, name: str, problem: Problem, line: Connection, memory: float | None, cpu: float | None, **asked: Any
) -> dict[str, Any]:
    """Solve, in a process of its own, and say each better plan and bound when it is there."""
    limit(memory, cpu)
    fork_only()  # so that the limits, and the time that is counted, are those of all that it begins
    last: list[Any] = [None, None]

    def follow(run: Run) -> None:
        if run.plan is not last[0]:
            line.send_bytes(dump(run.plan).encode())
        if run.bound is not None and run.bound != last[1]:
            line.send_bytes(json.dumps({"bound": run.bound}).encode())
        last[:] = run.plan, run.bound

    run = Run(problem, callbacks=(follow,), **asked)
    with suppress(TimeoutError):
        answer = solver(run)
        if answer is not None:
            run.offer(answer, name)
        elif run.plan is None and run.bound is None and not run.stopped:
            run.note("has no plan; of problems that are not for it, it should raise NotImplementedError")
    return {"notes": "; ".join(run.notes)[:300], **used()}


def _executable(place: str) -> bool:
    return os.access(place, os.X_OK) and Path(place).is_file()


def _run(path: str, run: Run) -> None:
    """Run an executable, by the protocol that docs/gapbench.md states."""
    name, words = Path(path).stem, {"TIME_LIMIT": run.deadline - run.started, "SEED": run.seed, "WORKERS": run.workers}
    with tempfile.TemporaryFile() as given:
        given.write(f"{dump(run.problem)}\n".encode())
        given.seek(0)
        environment = {**os.environ, **{f"GANGPLAN_{word}": f"{x:.6g}" for word, x in words.items()}}
        process = subprocess.Popen([path], stdin=given, stdout=subprocess.PIPE, env=environment)
    signal.signal(signal.SIGTERM, lambda *_: None)  # what it starts gets it too, and so does this process
    timer = Timer(run.remaining(), os.killpg, (0, signal.SIGTERM))
    timer.start()
    try:
        for text in process.stdout or ():
            said = parse_json(text.decode())
            if "skipped" in said:
                raise NotImplementedError(str(said["skipped"]))
            if "bound" in said:
                require_number(said["bound"], "bound")
                run.raise_bound(said["bound"], name)
            else:
                run.offer(from_document(said), name)
        code = process.wait()
    finally:
        timer.cancel()
        process.kill()
        os.killpg(0, signal.SIGTERM)
    if code not in (0, -signal.SIGTERM) and run.plan is None:
        raise ChildProcessError(f"{name} ended with exit code {code}")


def function_of(place: str) -> Any:
    """Load the function of a solver of others."""
    try:
        found = find_object(place) if ":" in place else _installed(place)
    except InstanceError as error:
        raise InstanceError("plugin", error.problem) from None
    if not callable(found):
        raise InstanceError("plugin", f"{place!r} is a {type(found).__name__}, not a function of a Run")
    return found


def _installed(name: str) -> Any:
    known = {point.name: point for point in entry_points(group=GROUP)}
    if name not in known:
        offered = f"nor one of {', '.join(known)}" if known else "and no package that is installed offers one"
        raise InstanceError("plugin", f"{name!r} is no FILE.py:FUNCTION and no executable, {offered}")
    try:
        return known[name].load()
    except ImportError as error:
        how = f"; {extra('peers')}" if known[name].value.startswith("gangplan.") else ""
        raise InstanceError("plugin", f"{name!r} needs {error.name}, which is not installed{how}") from None


def prepare(objective: str, *methods: str) -> None:
    """Have this process load what its forks will need: a deadline is for solving, not for imports."""
    import_libraries(objective)
    own = suite(objective)
    tiny = own.random_problem(0, own.variants[0])
    for name in ("auto", *methods):
        solve(tiny, time_limit=0.4, method=name, workers=1)  # in this process: what it imports stays


def limit(memory: float | None, cpu: float | None) -> None:
    """Let this process take so many bytes besides what is loaded, and so many processor seconds."""
    if memory is not None:
        with open("/proc/self/statm", encoding="ascii") as pages:
            memory += int(pages.read().split()[5]) * resource.getpagesize()
    for of, value in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, cpu)):
        if value is not None:
            resource.setrlimit(of, (ceil(value), ceil(value) + 1))


def used() -> dict[str, float]:
    """Return what this process and those that it has ended used."""
    _collect()
    own = resource.getrusage(resource.RUSAGE_SELF)
    largest = max(own.ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return {"cpu": round(own.ru_utime + own.ru_stime + children(), 4), "memory": 1024.0 * largest}


def children() -> float:
    """Return the processor seconds of the processes that this one has ended."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def _collect() -> None:
    """Wait a moment for the processes that the solve has ended: until then what they used is not counted."""
    until = time.perf_counter() + 0.5
    with suppress(ChildProcessError):
        while time.perf_counter() < until:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.002)
