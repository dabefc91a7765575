"""Try inputs in processes of their own, which may hang, eat memory or die."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

SECONDS, LONGEST, MEMORY = 5, 240.0, 2 * 10**9
"""Of an input: of a processor; of the clock, asleep; bytes of data."""


class Hang(BaseException):
    """Say that an input takes too long."""


def _hangs(*_: object) -> None:
    raise Hang


def _serve(pipe: Any, name: str, seed: int, first: int, last: int) -> None:
    """Try inputs, and say of each that it begins and how it ended."""
    from gangplan.doors.child import _verify  # noqa: F401  # what is imported now is not an input's
    from gangplan.hybrid import solve  # noqa: F401

    from .targets import drawn, run

    warnings.simplefilter("ignore")
    drawn(name, seed, first)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _hangs)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/inputs")
        os.chdir(f"{folder}/inputs")
        for number in range(first, last):
            content = drawn(name, seed, number)
            pipe.send(("begins", number, ""))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                ended, words = run(name, content), ""
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                ended, words = where(error), "".join(traceback.format_exception(error)[-6:])[-3000:]
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send((ended, number, words))
    pipe.send(("over", last, ""))
    os._exit(0)


def where(error: BaseException) -> str:
    """Return the kind of an error, and the last place of this repository in it: faults alike are one."""
    frames = traceback.extract_tb(error.__traceback__)
    root = str(Path(__file__).parents[2])
    last = next((x for x in reversed(frames) if x.filename.startswith(root) and ".venv" not in x.filename), frames[-1])
    return f"{type(error).__name__} {os.path.relpath(last.filename, root)}:{last.lineno}"


def attempt(name: str, seed: int, first: int, last: int, state: dict[str, Any], folder: Path) -> None:
    """Try inputs of a target in a process of its own, another one after each that it does not survive."""
    while first < last:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, name, seed, first, last))
        process.start()
        theirs.close()
        begun, limit = None, 600.0
        while True:
            try:
                ended, number, words = ours.recv() if ours.poll(limit) else ("Hang of the clock", begun, "")
            except EOFError:
                process.join()
                ended, number, words = f"end of the process: {process.exitcode}", begun, ""
            if ended == "begins":
                begun, limit = number, LONGEST
                continue
            if ended == "over":
                first = last
                break
            if number is None:
                raise SystemExit(f"{name}: {ended} before the first input")
            note(name, seed, number, ended, words, state, folder)
            first = number + 1
            if ended.startswith(("Hang of", "end of")):
                break
        process.kill()
        process.join()


def note(name: str, seed: int, number: int, ended: str, words: str, state: dict[str, Any], folder: Path) -> None:
    """Count an input; write one that failed, if it is the first of its kind."""
    row = state.setdefault(name, {"next": 0, "taken": 0, "refused": 0, "faults": {}})
    row["next"] = number + 1
    if number % 100 == 0:
        (folder / f"counts-{seed}.json").write_text(json.dumps(state, indent=1))
    if ended in ("taken", "refused"):
        row[ended] += 1
        return
    row["faults"][ended] = row["faults"].get(ended, 0) + 1
    if row["faults"][ended] == 1:
        from .targets import drawn

        path = folder / f"{name.replace(' ', '-')}-{seed}-{number}"
        path.write_bytes(drawn(name, seed, number))
        print(f"{path}: {ended}\n{words}", flush=True)
