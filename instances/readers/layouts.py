"""Read measured layouts: a table of runs, one a row, as performance summaries of training frameworks list them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from os import PathLike

import numpy as np

from ..errors import InstanceError, in_file, unknown
from ..intake import read_text
from ..layout.calibrate import MeasuredStep, within_memory
from ..layout.models import MODELS
from ..layout.pool import DOMAIN, gpu_pool
from ..layout.problem import LayoutPlan, LayoutProblem
from ..layout.transformer import Transformer
from .trace_rows import Format, TraceRow, table

_NEEDS = "gpu model gpus precision global_batch micro_batch sequence tp pp tokens_per_s_per_gpu"
_TAKES = "fsdp cp vp ep"
GRADIENT_BYTES = 2.0
"""Of a weight: performance recipes reduce gradients in 16 bits (NVIDIA-NeMo/Megatron-Bridge, scripts/performance:
``grad_reduce_in_fp32 = False``)."""


def read_measured_layouts(
    path: str | PathLike[str], models: Mapping[str, Transformer] = MODELS
) -> tuple[MeasuredStep, ...]:
    """Read a table of columns ``gpu, model, gpus, precision, global_batch, micro_batch, sequence, fsdp, tp, pp, cp, vp,
    ep, tokens_per_s_per_gpu``.

    Stages are as equal as they can be, and compute again what does not fit. `fsdp` of 1 is sharding of all; `cp`, `vp`
    and `ep` may be empty. Hosts have four GPUs where NVLink joins several hosts, else eight.

    Args:
        path: of a CSV file.
        models: by name; only letters and digits of a name count.

    Raises:
        InstanceError: naming line and column.
    """
    known = {_bare(name): model for name, model in models.items()}
    form: Format[MeasuredStep] = Format("measured layouts", _NEEDS, _TAKES, partial(_step, models=known), unique="")
    with in_file(path):
        return tuple(form.read(table(read_text(path)))[0])


def _step(row: TraceRow, models: Mapping[str, Transformer]) -> MeasuredStep:
    model, gpu = models.get(_bare(row.text("model"))), row.text("gpu")
    if model is None:
        raise InstanceError("model", unknown(row.text("model"), [x.name for x in models.values()]))
    count = row.whole("gpus")
    t, p, c, v, e = (1 if row.blank(key) else row.whole(key) for key in ("tp", "pp", "cp", "vp", "ep"))
    if count % (t * p * c):
        raise InstanceError("gpus", f"{count} are no multiple of tp {t} x pp {p} x cp {c}")
    hosts = min(count, 4 if gpu in DOMAIN else 8)
    if count % hosts:
        raise InstanceError("gpus", f"{count} are no whole hosts of {hosts}")
    rate = row.number("tokens_per_s_per_gpu")
    if not rate:
        raise InstanceError("tokens_per_s_per_gpu", "0 is not positive")
    precision, pools = row.text("precision").partition("-")[0].lower(), (gpu_pool(gpu, count // hosts, hosts),)
    size, sequence = row.whole("global_batch"), row.whole("sequence")
    problem = LayoutProblem(model, pools, size, sequence, precision, gradient_bytes=GRADIENT_BYTES)
    blocks = len(model.chain())
    if p * v > blocks:
        raise InstanceError("pp", f"{p} stages of {v} chunks each of {blocks} blocks")
    nothing = np.zeros(p, dtype=np.int32)
    sizes = blocks // (p * v) + (np.arange(p * v) < blocks % (p * v))
    zero = 3 if row.get("fsdp", "").strip() == "1" else 1
    degrees = count // (t * p * c), c, e, row.whole("micro_batch"), v, zero
    plan = LayoutPlan(nothing, nothing + t, sizes, nothing, nothing, *degrees)
    seconds = problem.batch * problem.sequence / (rate * count)
    return MeasuredStep(problem, within_memory(problem, plan), seconds)


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
