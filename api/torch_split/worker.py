"""What a process of a split run does: the pieces of one device, forward and then backward, whenever it is told to."""

from __future__ import annotations

import pickle
import time
from contextlib import suppress
from io import BytesIO
from typing import Any

import torch
from torch.utils import _pytree

from gangplan.instances.torch_model.load import load_model
from gangplan.instances.torch_model.program import Node, tensors

from .pieces import Piece


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


def run_seeded(node: Node, values: dict[str, Any], seed: int) -> Any:
    """Run a call with the random numbers of this seed, so that a model with dropout computes the same when split."""
    torch.manual_seed(seed)
    return node.run(values)


def serve(line: Any) -> None:
    """Answer calls of `Worker`, of which making one is the first, until nobody is left to answer."""
    worker: Any = None
    with suppress(EOFError):
        while True:
            call, given = unpack(line.recv_bytes())
            start, answer = time.perf_counter(), None
            try:
                if worker is None:
                    worker = Worker(*given)
                else:
                    answer = getattr(worker, call)(*given)
                reply = ("", answer, time.perf_counter() - start)
            except BaseException as error:
                reply = (f"{type(error).__name__}: {error}", None, 0.0)
            line.send_bytes(pack(reply))


class Worker:
    """The state of a process: its pieces, parameters, buffers and inputs, and what the pieces have made."""

    def __init__(
        self,
        source: str,
        pieces: bytes,
        state: dict[str, Any],
        inputs: dict[str, Any],
        seeds: dict[str, int],
        threads: int,
        training: bool,
    ) -> None:
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
