"""Published schedules against their published formulas: bubble and memory."""

from __future__ import annotations

import pytest

from gangplan import verify
from gangplan.instances.generators import generate
from gangplan.solvers.pipeline.published import PUBLISHED, as_published, layout, plan_of, published_bubble

P, M = 4, 12


def bubble_of(name: str, **options: object) -> tuple[float, float]:
    """Return the idle seconds of a step, and the micro-batches that the worst device holds."""
    problem = generate("micro_batches", devices=P, micro_batches=M, **options)
    plan = plan_of(problem, name)
    assert plan is not None
    verdict = verify(problem, plan)
    assert verdict.ok
    return (verdict.objective or 0.0) - problem.load().max(), float(verdict.memory.max())


@pytest.mark.parametrize(
    ("name", "options", "idle", "memory"),
    [
        # F = 1 and B = 2, as before zero bubble: (p - 1) (F + B)
        ("GPipe", {"split": False}, 3 * (P - 1), M),
        ("1F1B", {"split": False}, 3 * (P - 1), P),
        ("1F1B", {"split": False, "barrier": False}, 3 * (P - 1), P),
        # (p - 1) (F + B) / v, and 1 + (p - 1) / (p v) times the memory
        ("interleaved 1F1B", {"split": False, "chunks": 2}, 3 * (P - 1) / 2, P * (1 + (P - 1) / (2 * P))),
        ("interleaved 1F1B", {"split": False, "chunks": 4}, 3 * (P - 1) / 4, P * (1 + (P - 1) / (4 * P))),
        # a third of it: (p - 1) (F + B - W)
        ("ZB-H1", {}, P - 1, P),
        ("ZB-H1", {"barrier": False}, P - 1, P),
        # none in the long run
        ("ZB-H2", {"barrier": False}, 0, 2 * P - 1),
        ("ZB-V", {"barrier": False, "shape": "v", "chunks": 2}, 0, P),
    ],
)
def test_formulas(name: str, options: dict[str, object], idle: float, memory: float) -> None:
    """Idle seconds and memory are those of the papers, and so is the bubble that is told beside them."""
    assert bubble_of(name, **options) == pytest.approx((idle, memory))
    problem = generate("micro_batches", devices=P, micro_batches=M, **options)
    assert published_bubble(problem, name) == pytest.approx(idle / (idle + 3 * M))


def test_as_published() -> None:
    """Schedules before zero bubble have backward passes whole; of uneven stages papers say nothing."""
    problem = generate("micro_batches", devices=P, micro_batches=M)
    found = {name: as_published(problem, name)[0].split for name in PUBLISHED}
    assert [name for name, split in found.items() if not split] == ["GPipe", "1F1B", "interleaved 1F1B"]
    assert published_bubble(generate("micro_batches", spread=0.1), "1F1B") is None


@pytest.mark.parametrize("memory", range(P, 2 * P))
def test_between_zb_h1_and_zb_h2(memory: int) -> None:
    """Each micro-batch of memory beyond p takes a forward pass of the bubble away."""
    name = "ZB-H1" if memory == P else "ZB-H2"
    assert bubble_of(name, memory=memory, barrier=False) == pytest.approx((2 * P - 1 - memory, memory))


@pytest.mark.parametrize("micro_batches", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("options", [{}, {"split": False}, {"chunks": 2}, {"shape": "v", "chunks": 2}])
def test_few_micro_batches(micro_batches: int, options: dict[str, object]) -> None:
    """Every schedule that is made for a problem is a plan, however few micro-batches there are."""
    problem = generate("micro_batches", devices=4, micro_batches=micro_batches, **options)
    made = {name: plan for name in PUBLISHED if (plan := plan_of(problem, name)) is not None}
    assert made and all(verify(problem, plan).ok for plan in made.values())


def test_what_they_are_made_for() -> None:
    """A schedule is of its own shape of pipeline, and ZB of split passes."""
    line, whole, loop, v = (
        generate("micro_batches", **x)
        for x in ({}, {"split": False}, {"chunks": 2}, {"shape": "v", "chunks": 2})
    )  # fmt: skip
    assert [layout(x) for x in (line, whole, loop, v)] == ["line", "line", "loop", "v"]
    found = [[name for name in PUBLISHED if plan_of(x, name) is not None] for x in (line, whole, loop, v)]
    assert found == [
        ["GPipe", "1F1B", "ZB-H1", "ZB-H2"], ["GPipe", "1F1B"], ["GPipe", "interleaved 1F1B"], ["GPipe", "ZB-V"],
    ]  # fmt: skip
