"""The library of bounds: what is in it holds, what does not hold is named, and the better is kept."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import pytest

from gangplan.hybrid.bench.best_known import best_known, text_of
from gangplan.hybrid.bench.library import (
    BEST_KNOWN,
    LARGEST,
    LIBRARY,
    Record,
    check,
    check_all,
    noted,
    number,
    read_library,
    write_library,
)
from gangplan.hybrid.bench.suite import ONLINE, Instance, suite
from tests.seeds import some

KNOWN = {x.id: x for x in suite("all")}
SHIPPED = read_library()
ONE = "throughput-random-toy-00"


def one() -> tuple[Instance, Record]:
    """Return an instance whose optimum is certified in the library."""
    return KNOWN[ONE], SHIPPED[ONE]


def test_what_ships_holds() -> None:
    """Every third toy plan and certificate is checked anew; most optima are certified, and none fails."""
    toys = some([x for x in suite("toy") if x.objective != ONLINE], 3)
    found = check_all(toys, SHIPPED, 1, lambda share: None)
    assert [x for x in found if x.failed] == []
    assert sum(x.plan == "ok" for x in found) >= len(toys) * 0.9 and sum(x.certified for x in found) >= len(toys) // 9
    beside = check_all(toys[:2], SHIPPED, 2, lambda share: None)
    assert [replace(x, seconds=0.0) for x in beside] == [replace(x, seconds=0.0) for x in found[:2]]


def test_what_ships_is_of_the_manifest() -> None:
    """Records are of instances as the manifest has them, and no certificate is above any known plan."""
    for name, record in SHIPPED.items():
        assert record.hash == KNOWN[name].hash and record.key == "", name
        value = KNOWN[name].value
        assert record.value is None or (value is not None and value <= record.value), name
        assert not record.certificate or value is None or record.proves <= Fraction(value), name
        assert record.proved.get("bytes", 0) <= LARGEST or not record.certificate, name
        assert (record.value is None) == (not record.plan) and (not record.certificate or record.bound), name
    assert sum(file.stat().st_size for file in LIBRARY.iterdir()) < 8e6


def test_best_known_is_what_is_known() -> None:
    """The published file is that of manifest and library."""
    assert (LIBRARY / BEST_KNOWN).read_bytes() == text_of(best_known(KNOWN.values(), SHIPPED))


def wrong(name: str, record: Record) -> Record:
    """Return a record with something wrong."""
    certificate: dict[str, Any] = dict(record.certificate)
    raised = str(Fraction(record.bound) * (1 + Fraction(1, 10**6)))
    twice = str(2 * number(certificate["threshold"]))
    return {
        "value": replace(record, value=(record.value or 0) * 0.999),
        "plan": replace(record, plan={**record.plan, "device": [0] * len(record.plan["device"])}),
        "document": replace(record, plan={"kind": "none"}),
        "bound": replace(record, bound=raised),
        "threshold": replace(record, certificate={**certificate, "threshold": twice}),
        "steps": replace(record, certificate={**certificate, "steps": 1}),
        "argument": replace(record, certificate={"argument": "faith"}),
        "none": replace(record, bound="inf"),
    }[name]


@pytest.mark.parametrize("name", ["value", "plan", "document", "bound", "threshold", "steps", "argument", "none"])
def test_what_is_wrong_fails(name: str) -> None:
    """A value, a plan, a bound or a certificate that was changed is found out."""
    instance, record = one()
    assert record.certificate["argument"] == "ideals" and not check(instance, record).failed
    found = check(instance, wrong(name, record))
    assert found.failed and not found.certified


def test_a_certificate_above_a_plan_fails() -> None:
    """A certificate of a bound above the best known value is a failure of the checker, and told as one."""
    instance, record = one()
    assert "above a plan" in check(replace(instance, value=1e-9, bound=None), replace(record, value=None)).certificate


def test_another_hash_is_no_record() -> None:
    """What was found for another problem counts for nothing."""
    instance, record = one()
    found = check(instance, replace(record, hash="sha256:0"))
    assert (found.plan, found.certificate, found.failed) == ("none", "none", False)
    assert noted(instance, replace(record, hash="sha256:0", value=1e-9)) == instance


def test_the_better_is_kept() -> None:
    """The lower value and the higher bound stay, each with who made it; equal ones change nothing."""
    a = Record("x", "h", 3.0, {"p": 1}, {"by": "a"}, "2", {"c": 1}, {"by": "a"})
    b = Record("x", "h", 2.5, {"p": 2}, {"by": "b"}, "1", {"c": 2}, {"by": "b"})
    both = a.better(b)
    assert (both.value, both.plan, both.made["by"]) == (2.5, {"p": 2}, "b")
    assert (both.bound, both.certificate, both.proved["by"]) == ("2", {"c": 1}, "a")
    assert both.better(a) == both == b.better(a) and a.better(replace(a, made={"by": "later"})) == a
    assert number("inf") == inf and a.better(Record("x", "h", bound="inf", certificate={"c": 3})).proves == inf


def test_files_are_the_same_for_the_same(tmp_path: Path) -> None:
    """A library that is written again changes no file; a long certificate is left out and named."""
    _, record = one()
    long = replace(record, instance="throughput-random-toy-01", proved={**record.proved, "bytes": LARGEST + 1})
    long = replace(long, hash=KNOWN[long.instance].hash)
    assert write_library([long, record], KNOWN, tmp_path) == 1
    content = (tmp_path / "throughput-random.jsonl.gz").read_bytes()
    back = read_library(tmp_path)
    assert back[ONE] == record and not back[long.instance].certificate and back[long.instance].bound
    assert check(KNOWN[long.instance], replace(back[long.instance], plan={}, value=None)).certificate == "left out"
    assert write_library(back.values(), KNOWN, tmp_path) == 0
    assert (tmp_path / "throughput-random.jsonl.gz").read_bytes() == content
