"""Run orders of passes by `torch.distributed.pipelining` on a toy GPT, a process a device, beside the whole model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.pipeline import PipelinePlan, PipelineProblem, schedule_csv

from .launch import processes
from .reference import apart, largest

WIDTH, HEADS, TOKENS, WORDS, SAMPLES = 32, 4, 16, 61, 2
"""Of the toy: width, heads, tokens of a sample, vocabulary, samples of a micro-batch."""
SECONDS = 600.0
"""Seconds that a rehearsal may take."""


class ScheduleRun(NamedTuple):
    """What a run of a schedule found.

    Attributes:
        outputs, gradients: the largest differences from those of the whole model, relative to the largest number.
        start, finish: of each pass as the problem numbers them, in its seconds, float64 (n,).
    """

    outputs: float
    gradients: float
    start: FloatArray
    finish: FloatArray


class GptStage(nn.Module):  # type: ignore[misc]
    """A layer of a GPT, with the embedding before the first and the head after the last."""

    def __init__(self, first: bool, last: bool) -> None:
        super().__init__()
        self.before = nn.Embedding(WORDS, WIDTH) if first else nn.Identity()
        self.layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, 0.0, batch_first=True, norm_first=True)
        self.after = nn.Linear(WIDTH, WORDS) if last else nn.Identity()
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(TOKENS))

    def forward(self, x: Any) -> Any:
        """Map words, or what the stage before made of them, to what the next one takes, or to logits."""
        return self.after(self.layer(self.before(x), src_mask=self.mask, is_causal=True))


def loss(logits: Any, words: Any) -> Any:
    """Return the mean loss of predicting words."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), words.flatten())


def toy(problem: PipelineProblem) -> tuple[list[GptStage], Any, Any]:
    """Return the stages, the same in each process, and words and what they predict."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stages = [GptStage(s == 0, s == problem.stages - 1) for s in range(problem.stages)]
        words = torch.randint(WORDS, (problem.micro_batches * SAMPLES, TOKENS + 1))
    return stages, words[:, :-1].contiguous(), words[:, 1:].contiguous()


def rehearse(problem: PipelineProblem, plans: Mapping[str, PipelinePlan], mean: float = 0.02) -> dict[str, ScheduleRun]:
    """Run plans, by name, one after the other on as many processes as there are devices.

    Processes share the cores of this machine, so passes of the toy, of some milliseconds, are stretched in proportion
    to the seconds of the problem, to `mean` seconds each: what devices wait for is the order, and torch's transfers.

    Raises:
        InstanceError: if torch refuses a schedule, or a process ends early.
    """
    unit = mean / (float(problem.passes().seconds.mean()) or 1.0)
    count = problem.devices
    with (
        ThreadPoolExecutor(count) as pool,
        TemporaryDirectory() as folder,
        processes(range(count), ScheduleWorker) as ask,
    ):

        def work(rank: int) -> list[dict[str, Any]]:
            ask(rank, "begin", problem, rank, folder)
            return [ask(rank, "step", schedule_csv(problem, plan), unit)[0] for plan in plans.values()]

        running = [pool.submit(work, rank) for rank in range(count)]
        over, late = wait(running, SECONDS, FIRST_EXCEPTION)
        rows = [x.result() for x in running if x in over]  # or the first error
        if late:
            raise InstanceError("run", f"is not over in {SECONDS:g} s")
    return {name: _compared(problem, [row[i] for row in rows], unit) for i, name in enumerate(plans)}


def _compared(problem: PipelineProblem, rows: list[dict[str, Any]], unit: float) -> ScheduleRun:
    """Compare what processes have found with a step of the whole model."""
    stages, words, targets = toy(problem)
    logits = nn.Sequential(*stages)(words)
    loss(logits, targets).backward()
    outputs = [_apart(logits, row["outputs"]) for row in rows if "outputs" in row]
    gradients = [
        _apart(own.grad, row["gradients"][f"{s}.{name}"])
        for row in rows for s, stage in enumerate(stages) for name, own in stage.named_parameters()
        if f"{s}.{name}" in row["gradients"]
    ]  # fmt: skip
    if len(gradients) != sum(len([*x.parameters()]) for x in stages):
        raise InstanceError("run", "gradients of some parameters are missing")
    begin = min(a for row in rows for a, _ in row["times"].values())
    times = {x: at for row in rows for x, at in row["times"].items()}
    start, finish = np.array([times[x] for x in range(problem.n_passes)]).T
    return ScheduleRun(max(outputs), max(gradients), (start - begin) / unit, (finish - begin) / unit)


def _apart(whole: Any, part: Any) -> float:
    return apart(whole.detach(), part) / max(largest(whole), 1e-30)


class ScheduleWorker:
    """The process of a device."""

    def __init__(self, problem: PipelineProblem, rank: int, folder: str) -> None:
        torch.set_num_threads(1)
        self.problem, self.rank, self.csv = problem, rank, Path(folder, f"{rank}.csv")
        how: dict[str, Any] = {"init_method": f"file://{folder}/store", "world_size": self.problem.devices}
        distributed.init_process_group("gloo", rank=rank, **how)

    def step(self, orders: str, unit: float) -> dict[str, Any]:
        """Run the stages of the device by a schedule; return gradients, outputs and times."""
        problem, (modules, words, targets) = self.problem, toy(self.problem)
        own, last = np.flatnonzero(problem.device == self.rank).tolist(), problem.stages - 1
        stages = [PipelineStage(modules[s], s, problem.stages, torch.device("cpu")) for s in own]
        times: dict[int, tuple[float, float]] = {}
        for stage in stages:
            _stretch(problem, stage, unit, times)
        schedule = _PipelineScheduleRuntime(stages, problem.micro_batches, loss_fn=loss)
        self.csv.write_text(orders)
        schedule._load_csv(str(self.csv))
        for _ in range(2):  # the first one is to agree on shapes
            for module in modules:
                module.zero_grad()
            distributed.barrier()
            made = schedule.step(*[words] * (0 in own), **({"target": targets} if last in own else {}))
        gradients = {f"{s}.{name}": x.grad for s in own for name, x in modules[s].named_parameters()}
        return {"gradients": gradients, "times": times} | ({"outputs": made.detach()} if last in own else {})


def _stretch(problem: PipelineProblem, stage: Any, unit: float, times: dict[int, tuple[float, float]]) -> None:
    """Have each pass of a stage take its seconds, and note when it ran; of several steps the last one is kept."""
    s = stage.stage_index
    whole = problem.backward[s] + (0.0 if problem.split else problem.weight[s])

    def timed(call: Callable[..., Any], kind: int, seconds: float) -> Callable[..., Any]:
        def run(micro_batch: int, *given: Any, **named: Any) -> Any:
            begin = time.time()
            result = call(micro_batch, *given, **named)
            time.sleep(max(0.0, begin + seconds * unit - time.time()))
            times[problem.number(kind, s, micro_batch)] = begin, time.time()
            return result

        return run

    stage.forward_one_chunk = timed(stage.forward_one_chunk, 0, float(problem.forward[s]))
    stage.backward_one_chunk = timed(stage.backward_one_chunk, 1, float(whole))
    stage.backward_weight_one_chunk = timed(stage.backward_weight_one_chunk, 2, float(problem.weight[s]))
