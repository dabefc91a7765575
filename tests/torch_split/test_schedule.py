"""Orders of passes as PyTorch has them: loaded, validated, and run on a toy GPT with the whole model's gradients."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from gangplan import solve  # noqa: E402
from gangplan.instances.generators import generate  # noqa: E402
from gangplan.instances.pipeline import PipelineProblem, schedule_csv  # noqa: E402
from gangplan.solvers.pipeline.published import PUBLISHED, plan_of  # noqa: E402
from gangplan.torch_split.rehearsal import TOLERANCE  # noqa: E402
from gangplan.torch_split.schedule import rehearse  # noqa: E402

SHAPES = [{}, {"split": False}, {"chunks": 2}, {"shape": "v", "chunks": 2}, {"memory": 3}]


@pytest.mark.parametrize("options", SHAPES)
def test_torch_takes_them(options: dict[str, object], tmp_path: Path) -> None:
    """Every published schedule, and the best one, is one that PyTorch reads and validates."""
    from torch.distributed.pipelining.schedules import _Action, _validate_schedule

    problem = generate("micro_batches", devices=4, micro_batches=8, **options)
    plans = [plan for name in PUBLISHED if (plan := plan_of(problem, name)) is not None]
    for plan in [*plans, solve(problem, 10, workers=1).plan]:
        lines = schedule_csv(problem, plan).splitlines()
        actions = {d: [_Action.from_str(x) for x in line.split(",")] for d, line in enumerate(lines)}
        found = _validate_schedule(actions, 4, problem.stages, 8)
        assert found == dict(enumerate(problem.device.tolist()))


def ran(problem: PipelineProblem, *names: str) -> None:
    """Run published schedules and the best one."""
    plans = {name: plan_of(problem, name) for name in names} | {"best": solve(problem, 10, workers=1).plan}
    found = rehearse(problem, plans, mean=0.002)  # type: ignore[arg-type]
    assert list(found) == [*names, "best"]
    for name, run in found.items():
        assert max(run.outputs, run.gradients) <= TOLERANCE, name
        assert (run.finish - run.start >= 0.99 * problem.passes().seconds).all()
        for order in problem.orders(plans[name]):  # type: ignore[arg-type]
            assert (run.start[order[1:]] >= run.finish[order[:-1]] - 1e-6).all(), name


def test_it_runs() -> None:
    """On two processes outputs and gradients are the whole model's, and passes come in the order of the plan."""
    ran(generate("micro_batches", devices=2, micro_batches=3, memory=2), "ZB-H1")


@pytest.mark.long
def test_it_runs_on_four() -> None:
    """So they are on four, of each shape."""
    ran(generate("micro_batches", devices=4, micro_batches=8), "1F1B", "ZB-H1", "ZB-H2")
    ran(generate("micro_batches", devices=4, micro_batches=8, memory=3))
    ran(generate("micro_batches", devices=4, micro_batches=8, shape="v", chunks=2), "ZB-V")
    ran(generate("micro_batches", devices=4, micro_batches=8, chunks=2, split=False), "interleaved 1F1B")
