"""Run a split model as processes on this machine, each told what to do next, and the whole model beside it."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import torch

from gangplan.instances import InstanceError
from gangplan.instances.torch_model.load import LoadedModel, load_model, said
from gangplan.instances.torch_model.ops import Ops
from gangplan.instances.torch_model.program import Aten, Program, on_tensors, tensors

from .pieces import Piece
from .reference import WholeModel, reference, run_seeded


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
    whole: WholeModel
    seconds: dict[int, dict[str, float]]


def run_split(model: LoadedModel, ops: Ops, parts: tuple[Piece, ...], training: bool, seed: int = 0) -> SplitRun:
    """Run the pieces of a model, one process a device, and compare with the whole.

    Args:
        model: the model; its parameters and buffers stay as they are.
        ops: of its trace.
        parts: see `pieces`.
        training: run backward too.
        seed: of dropout and the like.
    """
    program = ops.profile.program
    if any(x.is_meta for x in program.state.values()):
        words = "the model's weights are on the meta device, without numbers: build it on a processor"
        raise InstanceError("run", words)
    devices = sorted({part.device for part in parts})
    buffers = frozenset(name for name in program.state if not program.is_parameter(name))
    seconds = {device: {"forward": 0.0, "backward": 0.0} for device in devices}
    with processes(devices, SplitWorker) as ask:
        whole = reference(model, ops, training, seed)
        for device in devices:
            ask(device, "begin", *_begin(model, program, device, parts, seed), torch.get_num_threads(), training)
        values: dict[str, Any] = {}
        for i, part in enumerate(parts):
            made, took = ask(part.device, "forward", i, {name: values[name] for name in part.receives})
            values |= made
            seconds[part.device]["forward"] += took
        passed: dict[tuple[str, int], Any] = {}
        for i, part in reversed(list(enumerate(parts)) if training else []):
            given = {name: [passed[name, user] for user in users] for name, users in part.sends.items()}
            for name in part.outputs:
                given.setdefault(name, []).append(whole.cotangents[name])
            back, took = ask(part.device, "backward", i, given)
            passed |= {(name, i): gradient for name, gradient in back.items()}
            seconds[part.device]["backward"] += took
        gradients: dict[str, Any] = {}
        changed: dict[str, Any] = {}
        for device in devices:
            (own, held), _ = ask(device, "end", buffers)
            changed |= held
            gradients |= {name: gradients[name] + x if name in gradients else x for name, x in own.items()}
    outputs = {name: values.get(name, whole.outputs[name]) for name in whole.outputs}
    return SplitRun(outputs, gradients, changed, whole, seconds)


def _begin(model: LoadedModel, program: Program, device: int, parts: tuple[Piece, ...], seed: int) -> tuple[Any, ...]:
    """Return what a process begins with; see `SplitWorker`."""
    own = {i: part for i, part in enumerate(parts) if part.device == device}
    operators = (node.call.name for node in program.nodes if isinstance(node.call, Aten))
    source = "" if all(name.startswith("aten.") for name in operators) else model.name
    state = {name: program.state[name] for part in own.values() for name in part.state}
    inputs = {name: program.inputs[name] for part in own.values() for name in part.inputs}
    try:
        pieces = pickle.dumps(own)
    except Exception as error:
        raise InstanceError("run", f"the model cannot be sent to another process: {said(error)}") from None
    return source, pieces, state, inputs, {node.name: seed + i for i, node in enumerate(program.nodes)}


@contextmanager
def processes(devices: Iterable[int], worker: type[Any]) -> Iterator[Callable[..., tuple[Any, float]]]:
    """Start a process for each device; yield what makes one do something and returns its answer and the seconds.

    The first call of each, whatever its name, makes its worker.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks but not the threads
    lines: dict[int, Any] = {}
    started: list[Any] = []

    def ask(device: int, call: str, *given: Any) -> tuple[Any, float]:
        try:
            lines[device].send_bytes(pack((call, given)))
            wrong, answer, seconds = unpack(lines[device].recv_bytes())
        except (EOFError, OSError):
            raise InstanceError("run", f"the process of device {device} ended early") from None
        if wrong:
            raise InstanceError("run", f"device {device}: {wrong}")
        return answer, seconds

    try:
        with _deaf():
            for device in devices:
                lines[device], theirs = context.Pipe()
                started.append(context.Process(target=serve, args=(theirs, worker), daemon=True))
                started[-1].start()
                theirs.close()  # so that the end of the process ends the line
        yield ask
    finally:
        for process in started:
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


def pack(value: Any) -> bytes:
    """Return a value, which may hold tensors, as bytes that need no shared memory.

    Strides are kept: whether rows or columns come first shows in which number a dropout draws for which.
    """
    box = BytesIO()
    torch.save(on_tensors(_alone, value), box)
    return box.getvalue()


def unpack(content: bytes) -> Any:
    """Return what another process of this run has packed, never a file; tensors want a gradient if they did before."""
    return torch.load(BytesIO(content), weights_only=False)


def _alone(x: Any) -> Any:
    """Return a tensor without its past, and without the rest of the storage that it may be a part of."""
    return x.detach().resolve_conj().resolve_neg().clone().requires_grad_(x.requires_grad)


def serve(line: Any, kind: type[Any]) -> None:
    """Answer calls of a kind of worker, of which making one is the first, until nobody is left to answer."""
    worker: Any = None
    with suppress(EOFError):
        while True:
            call, given = unpack(line.recv_bytes())
            start, answer = time.perf_counter(), None
            try:
                if worker is None:
                    worker = kind(*given)
                else:
                    answer = getattr(worker, call)(*given)
                reply = ("", answer, time.perf_counter() - start)
            except BaseException as error:
                reply = (f"{type(error).__name__}: {error}", None, 0.0)
            line.send_bytes(pack(reply))


class SplitWorker:
    """The state of a process: its pieces, parameters, buffers and inputs, and what the pieces have made."""

    def __init__(
        self, source: str, pieces: bytes, state: dict[str, Any], inputs: dict[str, Any], seeds: dict[str, int],
        threads: int, training: bool,
    ) -> None:  # fmt: skip
        """Take the pieces, by index; `source` is a model that registers operators of its own as it is built."""
        torch.set_num_threads(1)
        if source:
            load_model(source)
        self.pieces: dict[int, Piece] = pickle.loads(pieces)
        torch.set_num_threads(threads)
        self.state, self.inputs, self.seeds, self.training = state, inputs, seeds, training
        self.made: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}

    def forward(self, index: int, received: dict[str, Any]) -> dict[str, Any]:
        """Run a piece on what it receives; return what others want of it."""
        piece = self.pieces[index]
        values = received | {name: self.state[name] for name in piece.state}
        values |= {name: self.inputs[name] for name in piece.inputs}
        with torch.set_grad_enabled(self.training):
            for node in piece.nodes:
                values[node.name] = run_seeded(node, values, self.seeds[node.name])
        made = {name: values[name] for name in (*piece.sends, *piece.outputs)}
        self.made[index] = received, made
        return made

    def backward(self, index: int, given: dict[str, list[Any]]) -> dict[str, Any]:
        """Run a piece backward from the gradients of what it made; return those of what it received."""
        received, made = self.made.pop(index)
        results, gradients = [], []
        for name, value in made.items():
            for k, x in enumerate(tensors(value)):
                parts = [g[k] for g in given[name] if g[k] is not None]
                if x.requires_grad and parts:
                    results.append(x)
                    gradients.append(torch.stack(parts).sum(0) if len(parts) > 1 else parts[0])
        if results:
            torch.autograd.backward(results, gradients)
        return {name: [x.grad for x in tensors(value)] for name, value in received.items()}

    def end(self, buffers: frozenset[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the gradients of the parameters, and the buffers as they are now."""
        gradients = {name: x.grad for name, x in self.state.items() if x.grad is not None}
        return gradients, {name: x for name, x in self.state.items() if name in buffers}
