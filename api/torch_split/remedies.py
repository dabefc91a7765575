"""Tell what to change in a model that `torch.distributed.pipelining` does not run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gangplan.instances.torch_model.inplace import writes
from gangplan.instances.torch_model.load import Model
from gangplan.instances.torch_model.ops import Ops
from gangplan.instances.torch_model.program import STATE, tensors
from gangplan.instances.torch_model.trace import HINTS

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


def remedy(model: Model, ops: Ops, stage: list[int], message: str) -> str:
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
