"""Run a split model as `torch.distributed.pipelining` does, its stages one after the other in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import distributed
from torch.distributed.pipelining import ScheduleGPipe, SplitPoint, pipeline

from gangplan.instances.torch_model.load import LoadedModel, leaves, said
from gangplan.instances.torch_model.ops import Ops
from gangplan.instances.torch_model.program import STATE, on_tensors, tensors, writes
from gangplan.instances.torch_model.trace import HINTS, short, silent

from .reference import apart, kept, largest

MICRO_BATCHES = 2
"""Micro-batches of the rehearsal: enough for inputs to be cut and outputs to be joined."""


TOLERANCE = 1e-4
"""Relative difference up to which outputs are the same: a micro-batch's sums may be taken in another order."""


class StageError(Exception):
    """Tell what torch would not do, or would do otherwise than the whole model."""


def rehearse(model: LoadedModel, ops: Ops, stage: list[int], points: dict[str, str]) -> list[str]:
    """Return why `torch.distributed.pipelining` does not run the model cut at these points, with the remedy.

    The splitter, the stages and the schedule are torch's own, and make a GPipe step of the example inputs; only what
    passes between processes is handed over here, on the conditions of NCCL and Gloo. Buffers stay as they are.
    """
    try:
        with silent():
            expected = whole(model, MICRO_BATCHES)
            with kept(model.module), _unwrapped(model.module, points):
                pipe = cut(model, points)
                if pipe.num_stages != len(set(stage)):
                    raise StageError(f"the split points make {pipe.num_stages} stages, not {len(set(stage))}")
                _compare(expected, _step(pipe, model), ops.profile.random)
    except Exception as error:
        cause = error.__cause__ or error
        words = str(cause) if isinstance(cause, StageError) else short(said(cause))
        return [f"{words}: {remedy(model, ops, stage, str(cause))}"]
    return []


def _compare(expected: list[Any], result: Any, random: bool) -> None:
    """Raise an error unless the micro-batches have the outputs of as many passes of the whole model."""
    count, awaited = len(tensors(leaves(result))), len(tensors(leaves(expected[0])))
    if count != awaited:
        raise StageError(f"the last stage returns {count} outputs, not {awaited}")
    gap = 0.0 if random else difference(expected, result, MICRO_BATCHES)
    if not gap <= TOLERANCE:
        raise StageError(f"outputs differ from the whole model's, relatively by {gap:.3g}")


def cut(model: LoadedModel, points: dict[str, str]) -> Any:
    """Return the `Pipe` that torch makes of the model."""
    spec = {name: SplitPoint[point] for name, point in points.items()}
    return pipeline(model.module, mb_args=model.args, mb_kwargs=model.kwargs, split_spec=spec)


def repeated(value: Any, times: int) -> Any:
    """Return inputs with every tensor so many times along its first axis."""
    return on_tensors(lambda x: torch.cat([x] * times) if x.dim() else x, value)


def difference(expected: list[Any], result: Any, micro_batches: int) -> float:
    """Return the largest difference between outputs of the first micro-batches, relative to the largest number."""
    worst = 0.0
    for i, one in enumerate(expected):
        for a, b in zip(tensors(leaves(one)), tensors(leaves(result)), strict=True):
            worst = max(worst, apart(a, b.tensor_split(micro_batches)[i]) / max(largest(a), 1e-30))
    return worst


def whole(model: LoadedModel, passes: int) -> list[Any]:
    """Return what the whole model computes in some passes; its buffers are in the end what they were."""
    with torch.no_grad(), kept(model.module):
        inputs = [on_tensors(torch.clone, (model.args, model.kwargs)) for _ in range(passes)]
        return [on_tensors(torch.clone, model.module(*args, **kwargs)) for args, kwargs in inputs]


def _step(pipe: Any, model: LoadedModel) -> Any:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    wires: dict[tuple[int, int], deque[Any]] = {}
    device = next((x.device for x in tensors((model.args, model.kwargs))), torch.device("cpu"))
    args, kwargs = repeated((model.args, model.kwargs), MICRO_BATCHES)
    result = None
    distributed.init_process_group("fake", rank=0, world_size=pipe.num_stages, store=FakeStore())
    try:
        with torch.no_grad():
            for i in range(pipe.num_stages):
                stage = pipe.build_stage(i, device)
                for part in stage.submod.modules():  # each process has its own
                    part._buffers = on_tensors(torch.clone, dict(part._buffers))
                stage.get_fwd_recv_ops = _receiver(stage.get_fwd_recv_ops, wires, i)
                stage.get_fwd_send_ops = _sender(stage.get_fwd_send_ops, wires, i)
                schedule = ScheduleGPipe(stage, MICRO_BATCHES)
                result = schedule.step(*args, **kwargs) if i == 0 else schedule.step()
    finally:
        distributed.destroy_process_group()
    return result


def _sender(ops: Callable[[int], list[Any]], wires: dict[tuple[int, int], deque[Any]], here: int) -> Any:
    def send(micro_batch: int) -> list[Any]:
        for op in ops(micro_batch):
            wires.setdefault((here, op.peer), deque()).append(_sendable(op.tensor, here, op.peer).clone())
        return []

    return send


def _receiver(ops: Callable[[int], list[Any]], wires: dict[tuple[int, int], deque[Any]], here: int) -> Any:
    def receive(micro_batch: int) -> list[Any]:
        for op in ops(micro_batch):
            value = wires[op.peer, here].popleft()
            if (value.shape, value.dtype) != (op.tensor.shape, op.tensor.dtype):
                raise StageError(f"stage {op.peer} sends {_kind(value)}, {here} awaits {_kind(op.tensor)}")
            _sendable(op.tensor, op.peer, here).copy_(value)
        return []

    return receive


def _sendable(x: Any, source: int, target: int) -> Any:
    wrong = "conjugated when it is read" if x.is_conj() or x.is_neg() else "" if x.is_contiguous() else "not contiguous"
    if wrong:
        raise StageError(f"what stage {source} sends to stage {target}, {_kind(x)}, is {wrong}")
    return x


def _kind(x: Any) -> str:
    return f"{'x'.join(map(str, x.shape))} {str(x.dtype).removeprefix('torch.')}"


@contextmanager
def _unwrapped(module: Any, points: Iterable[str]) -> Iterator[None]:
    """Leave the calls of submodules in the end as they are: `pipeline` wraps those that it cuts at."""
    wrapped = [(part, part.__dict__.get("forward")) for part in map(module.get_submodule, points)]
    try:
        yield
    finally:
        for part, forward in wrapped:
            part.__dict__.pop("_orig_forward", None)
            part.__dict__.pop("forward", None)
            if forward is not None:
                part.forward = forward


GENERAL = "keep the modules about the cut together by profile --whole, or write the stages by hand as its PipelineStage"
CONSTANT = "inputs that are no tensors are constants of a trace: make them defaults of forward"
BATCH = (
    "torch cuts inputs and joins outputs along their first axis: give each one, and a loss to the schedule as loss_fn"
)
BY_MESSAGE = {
    "not a descendant": "make a module for each name that one has{modules}, and share the parameters",
    "stages, not": "torch cuts at each call of a module: profile the model again with --pipelining",
    "not contiguous": "end what makes it{makers} with .contiguous()",
    "conjugated": "end what makes it with .resolve_conj()",
    "zero-dimensional": BATCH,
    "is smaller than num_chunks": BATCH,
    "Dimension specified as 0": BATCH,
    "keyword argument": CONSTANT,
    "positional argument": CONSTANT,
    "outputs, not": "return each tensor once, and tensors alone",
    "relatively by": "the model changes what it reads, or draws numbers: keep that out of its forward",
}
"""The remedy by a part of torch's message, or of ours."""
MODES = {
    "grad": "torch.no_grad stands in the way{modules}: freeze parameters by requires_grad_(False), detach() values",
    "autocast": "autocast stands in the way{modules}: leave it out of the model, run the schedule under it",
}


def remedy(model: LoadedModel, ops: Ops, stage: list[int], message: str) -> str:
    """Return what to change, in words."""
    program = ops.profile.program
    if any(x.is_meta for x in (*model.module.parameters(), *model.module.buffers())):
        return "weights on the meta device hold no numbers: build the model on a processor"
    written = sorted({name for node in program.nodes for name in writes(node) if program.is_parameter(name)})
    if written:
        return f"{written[0].removeprefix(STATE)} is a parameter that forward writes into: leave that to the optimizer"
    if program.how != "torch.export":
        hint = next((words for part, words in HINTS.items() if part in message), GENERAL)
        return f"the splitter traces with torch.export alone, which cannot take this model: {hint}"
    kinds = {mode.kind: node.module for node in reversed(program.nodes) for mode in node.modes}
    if kinds and "submod" in message:
        return "; ".join(MODES[kind].format(modules=f", in {name}" if name else "") for kind, name in kinds.items())
    words = next((words for part, words in BY_MESSAGE.items() if part in message), None)
    buffers = _shared(model.module.named_buffers(remove_duplicate=False))
    if words is None and buffers:
        return f"one buffer has several names{buffers}: give each module a copy"
    modules = _shared(model.module.named_modules(remove_duplicate=False))
    return (words or GENERAL).format(modules=modules, makers=_makers(ops, stage))


def _makers(ops: Ops, stage: list[int]) -> str:
    """Return the op whose result passes to another stage and is not contiguous."""
    values, names = ops.profile.values, [op.name for op in ops.ops]
    for (u, v), passed in ops.edges.items():
        shown = [x for name in passed for x in tensors(values[name])]
        if stage[u] != stage[v] and not all(x.is_contiguous() for x in shown):
            return f", {names[u]},"
    return ""


def _shared(named: Iterable[tuple[str, Any]]) -> str:
    """Return the names of the first thing that has several."""
    names: dict[int, list[str]] = {}
    for name, part in named:
        names.setdefault(id(part), []).append(name)
    several = [x for x in names.values() if len(x) > 1]
    return f" ({' and '.join(several[0])})" if several else ""
