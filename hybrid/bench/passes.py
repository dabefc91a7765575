"""A pass over the suite: solve what may be improved, certify what has no certificate; resumable, a record a step."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from gangplan.instances.documents import from_document
from gangplan.instances.intake import parse_json
from gangplan.instances.outlet import make_folder, write_whole
from gangplan.solvers.processes import forked
from gangplan.solvers.run import Run

from .best_known import best_known, text_of
from .library import BEST_KNOWN, JOURNAL, Record, noted, of, reached, read_library, write_library
from .rows import BenchRow, append, read_lines, read_rows
from .run import Tell, note, results
from .suite import SIZES, Instance, make, read_manifest, suite, write_manifest
from .task import BenchSettings, SolveTask, environment, execute

FELL = 1e-3
"""A share: the full pass is over when no value falls by more."""
_LATE = 60.0
"""Seconds that the last argument may take after the time for a certificate is up, before it is killed."""


@dataclass(frozen=True, slots=True)
class PassStep:
    """An instance and a seed of a pass.

    Attributes:
        task: the solve, which starts from the record's plan.
        record: what is known.
        certify: seconds for a certificate.
    """

    task: SolveTask
    record: Record
    certify: float

    @property
    def key(self) -> str:
        """What makes another step a repetition of this one."""
        return f"seed {self.task.seed}, {self.task.deadline:g} s, {self.certify:g} s"


class Passed(NamedTuple):
    """What a pass did: its steps, values that fell by more than `FELL`, searches for certificates that failed."""

    steps: int
    fell: int
    failed: list[str]


def run_pass(
    instances: Sequence[Instance], settings: BenchSettings, certify: float, library: Path | None, tell: Tell
) -> Passed:
    """Take each step that the folder has no record of, the small instances first.

    What is certified optimal is left alone. Whatever ends it, the records in the folder stay, and the next call takes
    them into the ledger and the library before it goes on.
    """
    count, fell, failed = 0, 0, list[str]()
    gather(instances, settings, library)
    try:
        for seed in settings.seeds:
            steps = list(_steps(instances, settings, seed, certify, library))
            best = {x.task.instance.id: x.task.instance.value for x in steps}
            for i, (row, record) in enumerate(results(steps, settings, improve), 1):
                if row is not None:
                    append([row], settings.folder)
                append([record], settings.folder, JOURNAL)
                tell(i / len(steps))
                count += 1
                known = best[record.instance]
                fell += record.value is not None and (known is None or record.value < known * (1 - FELL))
                failed += [f"{record.instance}: {record.notes}"] * bool(record.notes)
    finally:
        gather(instances, settings, library)
    return Passed(count, fell, failed)


def _steps(
    instances: Sequence[Instance], settings: BenchSettings, seed: int, certify: float, library: Path | None
) -> Iterator[PassStep]:
    known = read_library(*filter(None, (library, settings.folder)))
    done = {(x.instance, x.hash, x.key) for x in read_lines(settings.folder / JOURNAL, Record)}
    for instance in sorted(instances, key=lambda x: SIZES.index(x.size)):
        record = of(instance, known.get(instance.id))
        step = PassStep(SolveTask(instance, "auto", seed, settings.deadlines[0], settings), record, certify)
        if (instance.id, instance.hash, step.key) in done or _settled(step, certified=True):
            continue
        yield step


def _settled(step: PassStep, *, certified: bool) -> bool:
    """Return whether the plan is the best known and optimal, as a method claims or as its certificate proves."""
    instance, record = step.task.instance, step.record
    if record.value is not None and not reached(record.value, instance.value):
        return False
    if certified:
        return record.certified(instance.zero)
    return record.status == "INFEASIBLE" or (record.value is not None and instance.proved)


def improve(step: PassStep) -> tuple[BenchRow | None, Record]:
    """Solve unless an optimum is known, then look for a certificate unless there is one that proves it."""
    instance, record, row = step.task.instance, replace(step.record, key=step.key, notes=""), None
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
        found = _certificate(step, record)
        record = replace(record.better(replace(record, **found)), notes=found.get("notes", ""))
    return None if row is None else row.against(instance.value), record


def _where() -> dict[str, str]:
    return {"date": datetime.now(UTC).date().isoformat(), "on": environment()}


def _certificate(step: PassStep, record: Record) -> dict[str, Any]:
    """Return the best certificate of a bound, as fields of a record: from a process that may be killed."""
    until = time.perf_counter() + step.certify + _LATE
    try:
        found = forked(lambda: _search(step, record), lambda: time.perf_counter() > until)
    except Exception as error:  # a bound above a plan is one: it is told when the pass ends
        return {"notes": f"{type(error).__name__}: {error}"[:300]}
    return {"notes": "the search crashed, or did not stop in time"} if found is None else found


def _search(step: PassStep, record: Record) -> dict[str, Any]:
    """Return the best certificate found, nothing if there is none."""
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
        return {}
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
    make_folder(settings.folder)
    ledger = settings.ledger or settings.folder / "ledger.jsonl"
    every = {x.id: x for x in (*suite("all", ledger=ledger), *instances)}
    note(read_rows(settings.folder), every.values(), ledger)
    known, own = read_library(*filter(None, (library, settings.folder))), read_manifest(ledger)
    new = {x.id: y for x in every.values() for z in (own.get(x.id, x),) if (y := noted(z, known.get(x.id))) != z}
    if new:
        write_manifest((own | new).values(), ledger)
    if library is not None:
        best = {x.id: x for x in suite("all", ledger=ledger)}
        write_library(known.values(), best, library)
        text = text_of(best_known(best.values(), read_library(library)))
        write_whole({library / BEST_KNOWN: text}, durable=True)
