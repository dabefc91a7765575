"""A pass over the suite: solve what may be improved, certify what has no certificate; resumable, a record a step."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

from gangplan.instances.documents import from_document
from gangplan.instances.intake import parse_json
from gangplan.instances.outlet import write_whole
from gangplan.solvers.processes import forked
from gangplan.solvers.run import Run

from .best_known import best_known, text_of
from .library import BEST_KNOWN, JOURNAL, Record, noted, read_library, write_library
from .rows import Row, append, read_lines, read_rows
from .run import note, results
from .suite import SIZES, Instance, make, read_manifest, suite, write_manifest
from .task import BenchSettings, Task, environment, execute

_LATE = 60.0
"""Seconds that the last argument may take after the time for a certificate is up, before it is killed."""


@dataclass(frozen=True, slots=True)
class Step:
    """An instance and a seed of a pass.

    Attributes:
        task: the solve, which starts from the record's plan.
        record: what is known.
        certify: seconds for a certificate.
    """

    task: Task
    record: Record
    certify: float

    @property
    def key(self) -> str:
        """What makes another step a repetition of this one."""
        return f"seed {self.task.seed}, {self.task.deadline:g} s, {self.certify:g} s"


def run_pass(
    instances: Sequence[Instance],
    settings: BenchSettings,
    certify: float,
    library: Path | None,
    tell: Callable[[float], None],
) -> int:
    """Take each step that the folder has no record of, the small instances first; return how many were taken.

    What is certified optimal is left alone. Whatever ends it, the records in the folder stay, and the next call takes
    them into the ledger and the library before it goes on.
    """
    count = 0
    gather(instances, settings, library)
    try:
        for seed in settings.seeds:
            steps = list(_steps(instances, settings, seed, certify, library))
            for i, (row, record) in enumerate(results(steps, settings, improve), 1):
                if row is not None:
                    append([row], settings.folder)
                append([record], settings.folder, JOURNAL)
                tell(i / len(steps))
                count += 1
    finally:
        gather(instances, settings, library)
    return count


def _steps(
    instances: Sequence[Instance], settings: BenchSettings, seed: int, certify: float, library: Path | None
) -> Iterator[Step]:
    known = _known(settings.folder, library)
    done = {(x.instance, x.hash, x.key) for x in read_lines(settings.folder / JOURNAL, Record)}
    for instance in sorted(instances, key=lambda x: SIZES.index(x.size)):
        record = known.get(instance.id)
        if record is None or record.hash != instance.hash:
            record = Record(instance.id, instance.hash)
        step = Step(Task(instance, "auto", seed, settings.deadlines[0], settings), record, certify)
        if (instance.id, instance.hash, step.key) in done or _settled(step, certified=True):
            continue
        yield step


def _known(folder: Path, library: Path | None) -> dict[str, Record]:
    """Return the library's records and the folder's, the better of each."""
    known = {} if library is None else read_library(library)
    for name, record in read_library(folder).items():
        before = known.get(name)
        known[name] = record if before is None or before.hash != record.hash else before.better(record)
    return known


def _settled(step: Step, *, certified: bool) -> bool:
    """Return whether the plan is the best known and optimal, as a method claims or as its certificate proves."""
    instance, record = step.task.instance, step.record
    if record.value is not None and instance.value is not None and record.value > instance.value:
        return False
    if certified:
        return record.certified(instance.zero)
    return record.status == "INFEASIBLE" or (record.value is not None and instance.proved)


def improve(step: Step) -> tuple[Row | None, Record]:
    """Solve unless an optimum is known, then look for a certificate unless there is one that proves it."""
    instance, record, row = step.task.instance, replace(step.record, key=step.key), None
    if not _settled(step, certified=False):
        initial = from_document(dict(record.plan)) if record.plan else None
        # any plan that is better than the record's is wanted
        row, text = execute(replace(step.task, instance=replace(instance, value=record.value), initial=initial))
        made = {"by": "auto", "seed": row.seed, "limit": row.deadline, "seconds": row.seconds, **_where()}
        if text:
            record = record.better(replace(record, value=row.value, plan=parse_json(text), made=made))
        if row.status == "INFEASIBLE":
            record = replace(record, status=row.status)
    if not record.certified(instance.zero):
        record = record.better(replace(record, **_certificate(step, record)))
    return None if row is None else row.against(instance.value), record


def _where() -> dict[str, str]:
    return {"date": datetime.now(UTC).date().isoformat(), "on": environment()}


def _certificate(step: Step, record: Record) -> dict[str, Any]:
    """Return the best certificate of a bound, as fields of a record: from a process that may be killed."""
    until = time.perf_counter() + step.certify + _LATE
    try:
        found = forked(lambda: _search(step, record), lambda: time.perf_counter() > until)
    except Exception as error:
        found = None
        if isinstance(error, AssertionError):  # a bound above a plan: nothing may hide that
            raise
    return {} if found is None else found


def _search(step: Step, record: Record) -> dict[str, Any] | None:
    from gangplan.instances.certificates import verify_bound
    from gangplan.instances.certificates.document import write
    from gangplan.solvers.certificates.make import certify

    began = time.perf_counter()
    problem: Any = make(step.task.instance)
    run = Run(problem, time_limit=inf, seed=step.task.seed)
    if record.plan:
        run.offer(from_document(dict(record.plan)), "library")
    proved = certify(run, step.certify)
    if proved is None:
        return None
    text = json.dumps(write(proved.certificate), separators=(",", ":"))
    middle = time.perf_counter()
    bound = verify_bound(problem, parse_json(text))
    end = time.perf_counter()
    return {
        "bound": "inf" if bound == inf else str(Fraction(bound)),
        "certificate": parse_json(text),
        "proved": {
            "by": proved.certificate.argument, "limit": step.certify, "seconds": round(middle - began, 2),
            "check": round(end - middle, 2), "bytes": len(text), **_where(),
        },
    }  # fmt: skip


def gather(instances: Sequence[Instance], settings: BenchSettings, library: Path | None) -> None:
    """Take what the folder knows better into the ledger and the library, of whatever instances."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    ledger = settings.ledger or settings.folder / "ledger.jsonl"
    every = {x.id: x for x in (*suite("all", ledger=ledger), *instances)}
    note(read_rows(settings.folder), every.values(), ledger)
    known, own = _known(settings.folder, library), read_manifest(ledger)
    new = {x.id: y for x in every.values() for z in (own.get(x.id, x),) if (y := noted(z, known.get(x.id))) != z}
    if new:
        write_manifest((own | new).values(), ledger)
    if library is not None:
        best = {x.id: x for x in suite("all", ledger=ledger)}
        write_library(known.values(), best, library)
        text = text_of(best_known(best.values(), read_library(library)))
        write_whole({library / BEST_KNOWN: text}, durable=True)
