"""Why a problem has no plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan import Cluster, DeviceType, OpGraph, PartitionProblem, generate, solve
from gangplan.hybrid import conflict
from gangplan.instances.quantities import quantity
from gangplan.solvers import Run


def problem(
    memory: list[float],
    edges: list[tuple[int, int]] = (),  # type: ignore[assignment]
    colocation: list[int] | None = None,
    time: list[list[float]] | None = None,
    room: float = 10.0,
    variant: str = "contiguous",
) -> PartitionProblem:
    """Make a problem on two GPUs with `room` bytes each."""
    n = len(memory)
    graph = OpGraph(
        names=tuple("abcdefgh"[:n]),
        device_types=("gpu",) if time is None or len(time) == 1 else ("gpu", "cpu"),
        time=np.ones((1, n)) if time is None else time,
        memory=memory,
        parameter_bytes=np.zeros(n),
        activation_bytes=np.zeros(n),
        source=[a for a, _ in edges],
        target=[b for _, b in edges],
        edge_bytes=np.zeros(len(edges)),
        colocation=colocation or [-1] * n,
        twin=[-1] * n,
        backward=[False] * n,
    )
    groups = [(DeviceType("gpu", memory=room), 2)]
    if time is not None and len(time) == 2:
        groups.append((DeviceType("cpu", host=True, memory=room), 1))
    return PartitionProblem(graph, Cluster.flat(*groups, bandwidth=1.0), variant)


def reasons(instance: PartitionProblem) -> list[str]:
    """Return the first words of the conflict of an infeasible problem."""
    result = solve(instance, time_limit=20, workers=1)
    assert result.status == "INFEASIBLE"
    return [words.split(":")[0] for words in result.conflict]


def test_class_too_large() -> None:
    """a and b need 12 bytes together and neither 12 alone: their class and the memory, not the class of c and d."""
    assert reasons(problem([6, 6, 1, 1], colocation=[0, 0, 1, 1])) == ["colocation", "memory"]


def test_classes_are_dropped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many classes a test goes without, one graph is made, in which they are gone and others are not."""
    instance = problem([1] * 6, colocation=[0, 0, 1, 1, 2, 2])
    classes = [part for part in conflict.requirements(instance) if part.label in (0, 2)]
    made = []
    monkeypatch.setattr(conflict, "replace", lambda x, **changes: made.append(x) or replace(x, **changes))
    found = conflict._relaxed(instance, classes)
    assert found.graph.colocation.tolist() == [-1, -1, 1, 1, -1, -1]
    assert [type(x).__name__ for x in made] == ["OpGraph", "PartitionProblem"]


def test_too_much_in_all() -> None:
    """Five ops of 5 bytes need 25, two devices have 20: the memory alone."""
    assert reasons(problem([5, 5, 5, 5, 5], colocation=[0, 0, -1, -1, -1])) == ["memory"]


def test_order_and_memory() -> None:
    """5, 6, 5, 4 along a chain: only {5, 5} and {6, 4} fit, which no two stages of the chain are."""
    chain = [(0, 1), (1, 2), (2, 3)]
    assert reasons(problem([5, 6, 5, 4], chain)) == ["memory", "variant"]
    assert solve(problem([5, 6, 5, 4], chain, variant="free"), time_limit=20, workers=1).status == "OPTIMAL"


def test_no_device_runs_the_class() -> None:
    """a runs on the GPU only, b on the CPU only, and they are to share a device: any of the three would mend it."""
    time = [[1.0, np.inf], [np.inf, 1.0]]
    assert reasons(problem([1, 1], colocation=[0, 0], time=time)) == ["colocation", "device type", "device type"]


@pytest.mark.parametrize("variant", ["contiguous", "convex", "free"])
def test_feasible_has_no_conflict(variant: str) -> None:
    """A problem with a plan has no conflict."""
    assert solve(problem([5, 5], variant=variant), time_limit=20, workers=1).conflict == ()


def test_thousands_of_classes_are_told_apart_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two requirements are compared: with 10,000 classes that took minutes of a limit of seconds."""

    def compare(self: object, other: object) -> bool:
        raise AssertionError("compared")

    monkeypatch.setattr(conflict.Requirement, "__eq__", compare)
    assert reasons(problem([4.0, 4.0, 4.0, 4.0, 9.0], colocation=[0, 0, 1, 1, -1]))


def test_no_time_to_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the time is up and there is much to list, a note says so instead."""
    monkeypatch.setattr(conflict, "_MANY", 1)
    run = Run(problem([11.0, 1.0]), time_limit=1e-6)
    assert conflict.conflict(run) == () and "no time to say" in run.notes[-1]


def test_versions_under_way() -> None:
    """Of replicated stages the memory is short with what samples under way add, and the words say so."""
    whole = generate("gpt", objective="stages", layers=2, devices=2, memory=1e6)
    (words,) = (part.words for part in conflict.requirements(whole) if part.words.startswith("memory"))
    more = float(whole.need()[1][0].sum())
    assert f"and {quantity(more, 'B', 6)} more, activations and a version of the weights, for each further" in words
