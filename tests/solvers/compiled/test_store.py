"""Compiled code never outlives what it was made of."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gangplan.solvers.compiled.kernel import Floats, Ints2, by_reference, inner, kernel, signature
from gangplan.solvers.compiled.store import digest

OUTER = """
from gangplan.solvers.compiled.kernel import kernel
from {inside} import ADDED, added

@kernel
def total(x: int) -> int:
    return added(x) + ADDED
"""
INSIDE = """
import numpy as np

from gangplan.solvers.compiled.kernel import inner

ADDED = {constant}

@inner
def added(x: int) -> int:
    return x + {number}
"""


class Pair(NamedTuple):
    """Two arrays."""

    left: Floats
    right: Ints2


@inner
def first_of(pair: Any, i: Any) -> Any:
    """Return an element of one array and the first of the other."""
    return pair.left[i] + pair.right[0, 0]


@kernel
def summed(pair: Pair, n: int) -> float:
    """Sum over what `first_of` returns."""
    both, total = by_reference(pair), 0.0
    for i in range(n):
        total += first_of(both, i)
    return total


def load(folder: Path, name: str, text: str) -> Any:
    """Return a module of that text."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def kept(kernel: Any) -> bool:
    """Return whether code is kept for the types that a kernel takes."""
    return bool(kernel._cache.load_overload(signature(kernel), kernel.targetctx))


@pytest.mark.parametrize(("number", "constant"), [(2, "1"), (1, "2"), (1, "np.uint8(2)")])
def test_a_change_elsewhere_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, constant: str
) -> None:
    """A kernel of an untouched file is compiled again when an inner function or a constant of another file changes."""
    monkeypatch.setattr("gangplan.solvers.compiled.store.folder", lambda: tmp_path / "code")
    values, digests = [], []
    for a, b in ((1, constant.replace("2", "1")), (number, constant)):
        load(tmp_path, "inside_of_total", INSIDE.format(number=a, constant=b))
        outer = load(tmp_path, "outer_of_total", OUTER.format(inside="inside_of_total"))
        os.utime(tmp_path / "outer_of_total.py", (1, 1))
        values.append(outer.total(0))
        digests.append(digest(outer.total.py_func))
        assert kept(outer.total)
        assert len(list((tmp_path / "code").rglob("*.nbi"))) == 1  # what was made of former sources is gone
    assert values == [2, 3] and digests[0] != digests[1]


@pytest.mark.parametrize("broken", ["*.nbi", "*.nbc"])
def test_a_broken_file_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """Files that were cut short, as by a power failure, are replaced when they are next asked for."""
    monkeypatch.setattr("gangplan.solvers.compiled.store.folder", lambda: tmp_path / "code")
    text = OUTER.format(inside="inside_of_broken")
    load(tmp_path, "inside_of_broken", INSIDE.format(number=1, constant=1))
    assert load(tmp_path, "outer_of_broken", text).total(0) == 2
    (path,) = (tmp_path / "code").rglob(broken)
    path.write_bytes(path.read_bytes()[:50])
    outer = load(tmp_path, "outer_of_broken", text)
    assert outer.total(0) == 2 and kept(outer.total)
    assert path.stat().st_size > 50


def test_a_reference_reads_the_fields() -> None:
    """A kernel reads through a reference what is in the tuple, which in Python is its own reference."""
    pair = Pair(np.arange(3.0), np.full((2, 2), 5))
    assert summed(pair, 3) == 18.0 and by_reference(pair) is pair
    assert summed.signatures == [signature(summed)]


def test_code_with_bounds_checked_is_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that checks bounds is not what a process that does not check them finds, nor does it replace that."""
    monkeypatch.setattr("gangplan.solvers.compiled.store.folder", lambda: tmp_path / "code")
    load(tmp_path, "inside_of_checked", INSIDE.format(number=1, constant=1))
    text = OUTER.format(inside="inside_of_checked")
    monkeypatch.setattr("numba.core.config.BOUNDSCHECK", None)
    plain = load(tmp_path, "outer_of_checked", text).total
    assert plain(0) == 2
    monkeypatch.setattr("numba.core.config.BOUNDSCHECK", 1)
    checked = load(tmp_path, "outer_of_checked", text).total
    assert not kept(checked)
    assert checked(0) == 2 and kept(checked) and kept(plain)
