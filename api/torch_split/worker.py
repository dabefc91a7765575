"""What a process of a split run does: its pieces forward, then backward, values and gradients passing by queues."""

from __future__ import annotations

import multiprocessing
import pickle
import time
from dataclasses import dataclass, field
from io import BytesIO
from queue import Empty
from typing import Any

import torch
from torch.utils import _pytree

from gangplan.instances.torch_model.load import load_model
from gangplan.instances.torch_model.program import Node, tensors

from .pieces import Piece

PARENT = -1
"""The key of the queue to the process that started all others."""
PATIENCE = 1.0
"""Seconds between looks at whether the others are still there."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one process has to do.

    Attributes:
        device: its own.
        pieces: all pieces of the model, by index; those of other devices without their nodes.
        inputs: the model's inputs that it needs, packed.
        buffers: names of the model's buffers, to be sent back as they are in the end.
        training: run backward too.
        threads: of torch.
        seed: of the first call; call i of the model gets the i-th seed from here.
        positions: the place of each call in the model, by its name.
    """

    device: int
    pieces: dict[int, Piece]
    inputs: Any
    buffers: frozenset[str]
    training: bool
    threads: int
    seed: int
    positions: dict[str, int]


def pack(value: Any) -> bytes:
    """Return a value, which may hold tensors, as bytes that need no shared memory.

    Strides are kept: whether rows or columns come first shows in which number a dropout draws for which.
    """
    box = BytesIO()
    torch.save(_pytree.tree_map(_alone, value), box)
    return box.getvalue()


def unpack(content: bytes) -> Any:
    """Return what another process of this run has packed, never a file; tensors want a gradient if they did before."""
    return torch.load(BytesIO(content), weights_only=False)


def _alone(x: Any) -> Any:
    """Return a tensor without its past, and without the rest of the storage that it may be a part of."""
    if not isinstance(x, torch.Tensor):
        return x
    return x.detach().resolve_conj().resolve_neg().clone().requires_grad_(x.requires_grad)


def work(device: int, boxes: dict[int, Any]) -> None:
    """Run a process: get a job and parameters from the own box, send results to the parent."""
    try:
        torch.set_num_threads(1)
        _Worker(device, boxes).run()
    except BaseException as error:
        boxes[PARENT].put(("error", device, f"{type(error).__name__}: {error}"))


def run_seeded(node: Node, values: dict[str, Any], seed: int) -> Any:
    """Run a call with the random numbers of this seed, so that a model with dropout computes the same when split."""
    torch.manual_seed(seed)
    return node.run(values)


@dataclass
class _Worker:
    device: int
    boxes: dict[int, Any]
    state: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    gradients: dict[tuple[str, int], Any] = field(default_factory=dict)
    cotangents: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        """Do the job."""
        _, source, content = self._next()
        if source:
            load_model(source)  # it registers operators of its own, perhaps where the model is built
        job: Job = pickle.loads(content)
        torch.set_num_threads(job.threads)
        mine = {i: piece for i, piece in job.pieces.items() if piece.device == self.device}
        needed = {name for piece in mine.values() for name in piece.state}
        inputs = unpack(job.inputs)
        while not needed <= self.state.keys():
            self._take(self._next())
        seconds = {"forward": 0.0, "backward": 0.0}
        done = {}
        with torch.set_grad_enabled(job.training):
            for i, piece in mine.items():
                self._wait(self.values, piece.receives)
                start = time.perf_counter()
                done[i] = self._forward(piece, inputs, job)
                seconds["forward"] += time.perf_counter() - start
                self._pass_on(piece, done[i][1], job)
        if job.training:
            for i in reversed(list(mine)):
                self._wait(self.gradients, [(name, user) for name, users in mine[i].sends.items() for user in users])
                self._wait(self.cotangents, mine[i].outputs)
                start = time.perf_counter()
                self._backward(i, mine[i], *done.pop(i), job)
                seconds["backward"] += time.perf_counter() - start
        parent = self.boxes[PARENT]
        for name, tensor in self.state.items():
            if tensor.grad is not None:
                parent.put(("gradient", name, pack(tensor.grad)))
            if name in job.buffers:
                parent.put(("state", name, pack(tensor)))
        parent.put(("done", self.device, seconds))

    def _forward(self, piece: Piece, inputs: dict[str, Any], job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the piece received, cut off from its past, and all its values."""
        received = {name: _leaf(self.values[name]) for name in piece.receives}
        values = {**received, **{name: self.state[name] for name in piece.state}}
        values |= {name: inputs[name] for name in piece.inputs}
        for node in piece.nodes:
            values[node.name] = run_seeded(node, values, job.seed + job.positions[node.name])
        return received, {name: values[name] for name in (*piece.sends, *piece.outputs)}

    def _pass_on(self, piece: Piece, made: dict[str, Any], job: Job) -> None:
        for name, users in piece.sends.items():
            for device in {job.pieces[user].device for user in users}:
                if device == self.device:
                    self.values[name] = made[name]
                else:
                    self.boxes[device].put(("value", name, pack(made[name])))
        for name in piece.outputs:
            self.boxes[PARENT].put(("output", name, pack(made[name])))

    def _backward(self, index: int, piece: Piece, received: dict[str, Any], made: dict[str, Any], job: Job) -> None:
        results, gradients = [], []
        for name, value in made.items():
            given = [self.gradients[name, user] for user in piece.sends.get(name, ())]
            given += [self.cotangents[name]] if name in piece.outputs else []
            for k, x in enumerate(tensors(value)):
                parts = [g[k] for g in given if g[k] is not None]
                if x.requires_grad and parts:
                    results.append(x)
                    gradients.append(torch.stack(parts).sum(0) if len(parts) > 1 else parts[0])
        if results:
            torch.autograd.backward(results, gradients)
        for name in piece.receives:
            found = [x.grad for x in tensors(received[name])]
            owner = next(other.device for other in job.pieces.values() if name in other.sends)
            if owner == self.device:
                self.gradients[name, index] = found
            else:
                self.boxes[owner].put(("gradient", (name, index), pack(found)))

    def _next(self) -> tuple[Any, ...]:
        parent = multiprocessing.parent_process()
        while parent is None or parent.is_alive():
            try:
                message: tuple[Any, ...] = self.boxes[self.device].get(timeout=PATIENCE)
            except Empty:
                continue
            return message
        raise SystemExit  # nobody is left to work for

    def _take(self, message: tuple[Any, ...]) -> None:
        kind, name, content = message
        places: dict[str, dict[Any, Any]] = {
            "state": self.state,
            "value": self.values,
            "gradient": self.gradients,
            "cotangent": self.cotangents,
        }
        places[kind][name] = unpack(content)

    def _wait(self, place: dict[Any, Any], names: Any) -> None:
        while not all(name in place for name in names):
            self._take(self._next())


def _leaf(value: Any) -> Any:
    def cut(x: Any) -> Any:
        return x.detach().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x

    return _pytree.tree_map(cut, value)
