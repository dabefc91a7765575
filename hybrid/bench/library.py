"""The library of bounds: of each instance the best plan and the best certificate, as files that anybody can check."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import repeat
from math import inf, isclose, nextafter
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError, verify
from gangplan.instances.certificates import certifies, verify_bound
from gangplan.instances.documents import from_document
from gangplan.instances.outlet import write_whole

from .rows import line_of, read_lines
from .suite import Instance, make

LIBRARY = Path(__file__).parent / "library"
JOURNAL = "records.jsonl"
"""The records of a pass and of submissions, in its folder."""
BEST_KNOWN = "best_known.json"
LARGEST = 1_000_000
"""Bytes of a certificate as JSON; longer ones are left out of the library, which names them."""
_CLOSE = 1e-9
"""Sums of another platform differ by less, as a share."""


@dataclass(frozen=True, slots=True)
class Record:
    """What the library holds of an instance.

    Attributes:
        instance, hash: of the manifest.
        value: of the plan, as the verifier says; None without a plan.
        plan: its document, empty without one.
        made: of the plan: ``by``, ``seed``, ``limit`` (s) and ``seconds`` of the solve, ``date``, ``on`` (versions and
            machine).
        bound: that the certificate proves: a rational as text, ``inf`` if there is no plan; empty without one.
        certificate: its document, empty without one or if it is left out.
        proved: of the certificate: ``by`` (its argument, or who submitted it), ``limit`` and ``seconds`` of the search,
            ``check`` (s) of the checker, ``bytes``, ``date``, ``on``.
        status: INFEASIBLE if a solve claims that there is no plan.
        key: the step of a pass that wrote it, empty in the library.
        notes: why that step has no certificate, if its search failed; empty in the library.
    """

    instance: str
    hash: str
    value: float | None = None
    plan: Mapping[str, Any] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)
    bound: str = ""
    certificate: Mapping[str, Any] = field(default_factory=dict)
    proved: Mapping[str, Any] = field(default_factory=dict)
    status: str = ""
    key: str = ""
    notes: str = ""

    @property
    def proves(self) -> Fraction | float:
        """What the certificate proves, 0 without one."""
        return number(self.bound) if self.certificate else Fraction(0)

    def better(self, other: Record) -> Record:
        """Return the better plan and the better certificate of two records of an instance."""
        new = self
        if other.value is not None and (self.value is None or other.value < self.value):
            new = replace(new, value=other.value, plan=other.plan, made=other.made)
        if other.bound and (not self.bound or number(other.bound) > number(self.bound)):
            new = replace(new, bound=other.bound, certificate=other.certificate, proved=other.proved)
        return replace(new, status=other.status or self.status)

    def certified(self, zero: float) -> bool:
        """Return whether its certificate proves its plan optimal, or that there is none."""
        return bool(self.certificate) and certifies(self.proves, self.value, zero)

    def slim(self) -> Record:
        """Return it as the library has it: no key, no notes, no certificate that is too long."""
        long = self.proved.get("bytes", 0) > LARGEST
        return replace(self, key="", notes="", certificate={} if long else self.certificate)


def number(bound: str) -> Fraction | float:
    """Return the bound that a record writes as text."""
    return inf if bound == "inf" else Fraction(bound)


def of(instance: Instance, record: Record | None) -> Record:
    """Return a record that is of the instance as it is, else an empty one."""
    return record if record is not None and record.hash == instance.hash else Record(instance.id, instance.hash)


def read_library(*folders: Path) -> dict[str, Record]:
    """Return the best of folders by instance, by default the package's: of each its library, then records of a pass."""
    files = [file for x in folders or (LIBRARY,) for file in (*sorted(x.glob("*.jsonl.gz")), x / JOURNAL)]
    found: dict[str, Record] = {}
    for record in (x for file in files for x in read_lines(file, Record)):
        known = found.get(record.instance)
        same = known is not None and known.hash == record.hash
        found[record.instance] = known.better(record) if known is not None and same else record
    return found


def write_library(records: Iterable[Record], instances: Mapping[str, Instance], folder: Path) -> int:
    """Write a file for each objective and family, the same bytes for the same records; return how many changed."""
    files: dict[Path, list[bytes]] = {}
    for record in sorted((x for x in records if x.instance in instances), key=lambda x: x.instance):
        instance = instances[record.instance]
        lines = files.setdefault(folder / f"{instance.objective}-{instance.family}.jsonl.gz", [])
        if record.hash == instance.hash:
            lines.append(line_of(record.slim()))
    folder.mkdir(parents=True, exist_ok=True)
    changed = {
        path: gzip.compress(b"".join(lines), mtime=0) for path, lines in files.items()
        if not path.exists() or [line_of(x) for x in read_lines(path, Record)] != lines
    }  # fmt: skip
    write_whole(changed, durable=True)
    return len(changed)


def noted(instance: Instance, record: Record | None) -> Instance:
    """Return an instance with what a record knows better, its bound rounded down."""
    record = of(instance, record)
    found = instance.better(record.value, None, str(record.made.get("by", "")), record.made.get("seconds"))
    if record.certificate and record.proves not in (0, inf):
        down = nextafter(float(record.proves), 0.0)
        found = found.better(None, down, str(record.proved.get("by", "")), record.proved.get("seconds"))
    return found


@dataclass(frozen=True, slots=True)
class InstanceCheck:
    """What was checked of an instance.

    Attributes:
        plan, certificate: ``ok``, ``none`` or ``left out``; else what is wrong with it.
        best: whether the plan is as good as the best known value.
        optimal: whether the manifest has an optimum by what a method claims, or a solve claims that there is no plan.
        certified: whether the certificate proves the plan optimal, or that there is none.
        seconds: of the check.
    """

    instance: str
    objective: str
    size: str
    plan: str = "none"
    certificate: str = "none"
    best: bool = False
    optimal: bool = False
    certified: bool = False
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether anything is wrong."""
        return not {self.plan, self.certificate} <= {"ok", "none", "left out"}


def check(instance: Instance, record: Record | None, longest: float = inf) -> InstanceCheck:
    """Check a plan by the verifier and a certificate by the checker, from the manifest's problem and nothing else.

    A certificate whose check took more than `longest` seconds when it was made is left out.
    """
    began = time.perf_counter()
    optimal = instance.proved or (record is not None and record.status == "INFEASIBLE")
    found = InstanceCheck(instance.id, instance.objective, instance.size, optimal=optimal)
    if record is None or record.hash != instance.hash:
        return found
    try:
        problem: Any = make(instance)
    except InstanceError as error:
        return replace(found, plan=str(error))
    if record.plan:
        found = replace(found, plan=_plan(problem, record), best=reached(record.value, instance.value))
    if record.certificate and record.proved.get("check", 0.0) <= longest:
        said = _certificate(problem, record, instance)
        certified = said == "ok" and found.plan in ("ok", "none") and record.certified(instance.zero)
        found = replace(found, certificate=said, certified=certified)
    elif record.bound:
        found = replace(found, certificate="left out")
    return replace(found, seconds=time.perf_counter() - began)


def reached(value: float | None, best: float | None) -> bool:
    """Return whether a value is as good as the best known one, up to rounding."""
    return value is not None and (best is None or value <= best or isclose(value, best, rel_tol=_CLOSE))


def _plan(problem: Any, record: Record) -> str:
    try:
        verdict = verify(problem, from_document(dict(record.plan)))
    except InstanceError as error:
        return str(error)
    if verdict.objective is None:
        return f"is not feasible: {verdict.violations[0]}"
    close = record.value is not None and isclose(verdict.objective, record.value, rel_tol=_CLOSE)
    return "ok" if close else f"has the value {verdict.objective!r}, not {record.value!r}"


def _certificate(problem: Any, record: Record, instance: Instance) -> str:
    try:
        bound = verify_bound(problem, dict(record.certificate))
    except InstanceError as error:
        return str(error)
    if bound < record.proves:
        return f"proves {float(bound)!r}, not {float(record.proves)!r}"
    above = [x for x in (record.value, instance.value) if x is not None and bound > Fraction(x)]
    return f"proves {float(bound)!r}, above a plan of {above[0]!r}" if above else "ok"


def check_all(
    instances: Sequence[Instance], records: Mapping[str, Record], jobs: int, tell: Any, longest: float = inf
) -> list[InstanceCheck]:
    """Check instances in some processes, in their order."""
    found = []
    wanted = [records.get(x.id) for x in instances]
    with nullcontext() if jobs == 1 else ProcessPoolExecutor(jobs) as pool:
        for one in (map if pool is None else pool.map)(check, instances, wanted, repeat(longest)):
            found.append(one)
            tell(len(found) / len(instances))
    return found
