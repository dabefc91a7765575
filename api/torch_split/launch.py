"""Run a split model as processes on this machine, and the whole model beside it."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import Empty
from typing import Any

import torch

from gangplan.instances import InstanceError
from gangplan.instances.torch_model.load import Model, said
from gangplan.instances.torch_model.ops import Ops
from gangplan.instances.torch_model.program import Aten

from .pieces import Piece
from .reference import Reference, reference
from .worker import PARENT, PATIENCE, Job, pack, unpack, work


@dataclass(frozen=True, slots=True)
class SplitRun:
    """What a split run and the run of the whole model found.

    Attributes:
        outputs, gradients, buffers: by name, of the split run; the gradients of a tied parameter's copies are summed.
        whole: the same of the whole model.
        seconds: of each device, ``forward`` and ``backward``.
    """

    outputs: dict[str, Any]
    gradients: dict[str, Any]
    buffers: dict[str, Any]
    whole: Reference
    seconds: dict[int, dict[str, float]]


def run_split(model: Model, ops: Ops, parts: tuple[Piece, ...], training: bool, seed: int = 0) -> SplitRun:
    """Run the pieces of a model, one process a device, and compare with the whole.

    Args:
        model: the model; its parameters and buffers stay as they are.
        ops: of its trace.
        parts: see `pieces`.
        training: run backward too.
        seed: of dropout and the like.

    Raises:
        InstanceError: if a process fails; it says where and why.
    """
    program = ops.profile.program
    if any(x.is_meta for x in program.state.values()):
        raise InstanceError(
            "run", "the model's weights are on the meta device, without numbers: build it on a processor"
        )
    devices = sorted({part.device for part in parts})
    with _processes(devices) as (boxes, stopped):
        bare = {i: replace(part, nodes=()) for i, part in enumerate(parts)}
        buffers = frozenset(name for name in program.state if not program.is_parameter(name))
        operators = (node.call.name for node in program.nodes if isinstance(node.call, Aten))
        source = "" if all(name.startswith("aten.") for name in operators) else model.name
        positions = {node.name: i for i, node in enumerate(program.nodes)}
        for device in devices:
            own = {i: part for i, part in enumerate(parts) if part.device == device}
            needed = {name for part in own.values() for name in part.inputs}
            inputs = pack({name: program.inputs[name] for name in program.inputs if name in needed})
            job = Job(device, bare | own, inputs, buffers, training, torch.get_num_threads(), seed, positions)
            boxes[device].put(("job", source, _pickled(job)))
            for name in dict.fromkeys(name for part in own.values() for name in part.state):
                boxes[device].put(("state", name, pack(program.state[name])))
        whole = reference(model, ops, training, seed)
        home = {name: part.device for part in parts for name in part.outputs}
        if training:
            for name, device in home.items():
                boxes[device].put(("cotangent", name, pack(whole.cotangents[name])))
        found = _collect(boxes[PARENT], stopped, devices)
    outputs = {name: found["output"].get(name, whole.outputs[name]) for name in whole.outputs}
    return SplitRun(outputs, found["gradient"], found["state"], whole, found["done"])


def _pickled(job: Job) -> bytes:
    try:
        return pickle.dumps(job)
    except Exception as error:
        raise InstanceError("run", f"the model cannot be sent to another process: {said(error)}") from None


def _collect(box: Any, stopped: Callable[[], list[int]], devices: list[int]) -> dict[str, dict[Any, Any]]:
    """Return what processes have sent by kind: ``output``, ``gradient``, ``state`` (buffers), ``done`` (seconds)."""
    found: dict[str, dict[Any, Any]] = {kind: {} for kind in ("output", "gradient", "state", "done")}
    ended: set[int] = set()
    while len(found["done"]) < len(devices):
        try:
            kind, *content = box.get(timeout=PATIENCE)
        except Empty:
            dead = {device for device in stopped() if device not in found["done"]}
            if dead & ended:  # what a process says last may come a moment after its end
                raise InstanceError("run", f"the process of device {min(dead & ended)} ended early") from None
            ended = dead
            continue
        if kind == "error":
            raise InstanceError("run", f"device {content[0]}: {content[1]}")
        name, value = content
        value = value if kind == "done" else unpack(value)
        found[kind][name] = found[kind][name] + value if kind == "gradient" and name in found[kind] else value
    return found


@contextmanager
def _processes(devices: list[int]) -> Iterator[tuple[dict[int, Any], Callable[[], list[int]]]]:
    """Start a process for each device; yield the queues and a call that tells which processes have ended."""
    context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks but not the threads
    boxes = {device: context.Queue() for device in (PARENT, *devices)}
    processes = {device: context.Process(target=work, args=(device, boxes), daemon=True) for device in devices}
    try:
        with _deaf():
            for process in processes.values():
                process.start()
        yield boxes, lambda: [device for device, process in processes.items() if not process.is_alive()]
    finally:
        for box in boxes.values():
            box.cancel_join_thread()
        for process in processes.values():
            if process.pid is not None:
                process.terminate()
                process.join()


@contextmanager
def _deaf() -> Iterator[None]:
    """Have processes that are started here ignore Ctrl-C: this process hears it, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what to do with signals
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
