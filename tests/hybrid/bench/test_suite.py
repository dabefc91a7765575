"""The instances of GapBench: the manifest is what the generators make."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gangplan.hybrid.bench.suite import (
    MANIFEST,
    ONLINE,
    SIZES,
    Instance,
    held_out,
    make,
    read_manifest,
    specified,
    suite,
    write_manifest,
)
from gangplan.instances import InstanceError
from gangplan.instances.documents import content_hash
from gangplan.instances.kinds import PROBLEMS

KNOWN = read_manifest()


def test_the_manifest_is_whole() -> None:
    """At least 600 instances, as specified, no two the same problem, of every size and objective."""
    assert len(KNOWN) >= 600
    assert [(x.id, dict(x.arguments)) for x in specified()] == [(x.id, dict(x.arguments)) for x in KNOWN.values()]
    assert len({x.hash for x in KNOWN.values()}) == len(KNOWN)
    problems = [x for x in KNOWN.values() if x.objective != ONLINE]
    found = Counter((x.objective, x.size) for x in problems)
    assert len(problems) >= 600 and len(found) == (len(PROBLEMS) - 1) * len(SIZES)  # no layouts


@pytest.mark.parametrize("size", ["toy", "small"])
def test_regenerated_bit_for_bit(size: str) -> None:
    """Every toy and small instance is made again with the hash of the manifest."""
    assert [x.id for x in suite(size) if content_hash(make(x, check=False)) != x.hash] == []


def test_another_problem_is_refused() -> None:
    """An instance whose arguments were changed is not the one of the manifest."""
    one = KNOWN["step-random-toy-00"]
    with pytest.raises(InstanceError, match=r"step-random-toy-00: generated, its hash is sha256:.*, not sha256"):
        make(replace(one, arguments={**one.arguments, "seed": 99}))


def test_bounds_and_values_agree() -> None:
    """No bound of the manifest is above its value, and whoever has one says by whom."""
    for x in KNOWN.values():
        assert x.value is None or x.bound is None or x.bound <= x.value, x.id
        assert (x.value is None) == (not x.by) and (x.bound is None) == (not x.bound_by), x.id


ONE = Instance("a", "step", "f", "toy", "g", {}, "h")


def test_better_only() -> None:
    """A value is replaced by a lower one, a bound by a higher one, and a plan below it disproves a bound."""
    one = ONE.better(5.0, 3.0, "x", 1.0)
    assert one.better(6.0, 2.0, "y", 1.0) == one
    assert one.better(4.0, 4.0, "y", 2.0).proved and not one.proved
    below = one.better(2.0, None, "y", None)
    assert (below.value, below.bound, below.by, below.bound_by) == (2.0, None, "y", "")


def test_a_ledger_counts_where_it_knows_more(tmp_path: Path) -> None:
    """A line of one's own ledger is taken for the same problem only, and only what is better."""
    one = KNOWN["step-random-toy-00"]
    write_manifest([replace(one, value=1e-9, by="me", bound=None, bound_by="")], tmp_path / "own.jsonl")
    found = {x.id: x for x in suite("toy", ledger=tmp_path / "own.jsonl")}[one.id]
    assert found.value == 1e-9 and found.by == "me"
    write_manifest([replace(one, value=1e-9, by="me", hash="sha256:0")], tmp_path / "own.jsonl")
    assert {x.id: x for x in suite("toy", ledger=tmp_path / "own.jsonl")}[one.id] == one


def test_a_broken_ledger_is_named(tmp_path: Path) -> None:
    """File, line and field of what is wrong are named."""
    path = tmp_path / "own.jsonl"
    path.write_text(MANIFEST.read_text().splitlines()[0].replace('"value":', '"value":"x","z":') + "\n")
    with pytest.raises(InstanceError, match=r"own.jsonl: line 1"):
        suite("toy", ledger=path)


def test_a_sample() -> None:
    """A sample has so many of each objective, of different families; a small suite is left whole."""
    found = suite("small", sample=6)
    assert Counter(x.objective for x in found) == dict.fromkeys([x for x in PROBLEMS if x != "layout"], 6)
    assert len({x.family for x in found}) >= 5 and len({x.id for x in found}) == 42
    assert suite("toy", sample=1000) == sorted(suite("toy"), key=lambda x: list(PROBLEMS).index(x.objective))


@pytest.mark.parametrize("generator", sorted({x.generator for x in KNOWN.values()}))
def test_a_held_out_instance(generator: str) -> None:
    """It is of the same family and size, the same for the same seed, and no problem of the manifest."""
    hashes = {x.hash for x in KNOWN.values()}
    for x in [x for x in suite("all") if x.generator == generator and x.size in ("toy", "small")][::20]:
        one, other = held_out(x, 7), held_out(x, 8)
        assert one == held_out(x, 7) and len({one.hash, other.hash} - hashes) == 2
        assert (one.family, one.size, one.id, one.held_out) == (x.family, x.size, f"{x.id}-s7", 7)
        assert (one.value, one.bound) == (None, None)
