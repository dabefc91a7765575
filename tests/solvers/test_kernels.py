"""Kernels say what they take, and methods say which kernels they call: so all can be compiled before anybody calls."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gangplan.hybrid.compiling import compile_all
from gangplan.hybrid.table import named
from gangplan.solvers import Run
from gangplan.solvers.compiled.kernel import kernel, signature
from gangplan.solvers.kernels import ROOT, SOURCES, in_memory, name_of, on_disk, shelf, token
from gangplan.solvers.method import OBJECTIVES, Method, suite

_PROBLEMS = 12
"""Tiny problems for each method: every goal, capacity and collective is among them."""


@pytest.mark.parametrize(
    "method", [m for objective in OBJECTIVES for m in named(objective).values() if m.kernels is not None]
)
def test_kernels_are_compiled_functions(method: Method) -> None:
    """What a method says it compiles is a function that numba compiles."""
    assert method.kernels is not None
    assert all(hasattr(kernel, "signatures") for kernel in method.kernels())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_problem_needs_a_second_compilation(objective: str) -> None:
    """Whatever is solved, a kernel is called with the types that it declares, for which it was compiled."""
    tools = suite(objective)
    kernels: set[Any] = set()
    for method in named(objective).values():
        if method.kernels is None or (method.library and find_spec(method.library.partition(".")[0]) is None):
            continue
        kernels.update(method.kernels())
        for variant in tools.variants_of(method):
            for seed in range(_PROBLEMS):
                run = Run(tools.random_problem(seed, variant), time_limit=60.0, workers=1)
                prepared = tools.prepare(run)
                if not run.stopped and method.suits(prepared):
                    method.run(run, prepared)
    compile_all(objective)
    for found in kernels:
        assert found.signatures == [signature(found)], name_of(found)


def test_a_copy_shares_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that has the token of the original looks where that keeps its code; the token does not tell the folder."""
    here, told = shelf(Path(ROOT, "solvers", "step")), token()
    monkeypatch.setattr("gangplan.solvers.kernels.ROOT", "/copy/gangplan")
    assert shelf(Path("/copy/gangplan/solvers/step")) != here
    monkeypatch.setenv(SOURCES, told)
    assert shelf(Path("/copy/gangplan/solvers/step")) == here != shelf(Path("/copy/gangplan/solvers/stages"))
    assert "/" not in told


@kernel
def double(number: float) -> float:
    """Return twice a number."""
    return number + number


def test_what_has_run_is_in_memory_and_on_disk() -> None:
    """A function is in memory once it has run here, and on disk from then on."""
    function: Any = double
    assert double(2.5) == 5.0
    assert in_memory(lambda: (double,)) and on_disk(lambda: (double,))
    assert not in_memory(lambda: (kernel(function.py_func),))
    assert function.py_func(2.5) == 5.0


def kernels(objective: str) -> list[str]:
    """Return the names of all kernels that methods of an objective say they compile."""
    methods = named(objective).values()
    return sorted({name_of(kernel) for method in methods if method.kernels is not None for kernel in method.kernels()})


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_methods_name_all_kernels(objective: str) -> None:
    """What Python can call in the modules of an objective's kernels is named by its methods."""
    names = kernels(objective)
    for module in {name.partition(":")[0] for name in names}:
        for name, found in vars(import_module(f"gangplan.{module}")).items():
            if getattr(found, "__module__", "") == f"gangplan.{module}" and hasattr(found, "signatures"):
                assert found.targetoptions.get("no_cpython_wrapper") or f"{module}:{name}" in names
