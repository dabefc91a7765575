"""Read Sailor's files (Strati et al., SOSP 2025): profiles of layers, and measured training runs with their layouts.

``profiles/MODEL_GPU.json`` has ``[forward, backward, update]`` seconds by micro-batch, tensor parallelism and layer,
``layers.json`` bytes and parameters by model, tensor parallelism and layer, ``intra_node_bandwidths.json`` and
``network_coeffs_all_homo.json`` a polynomial in log2 of a message's MB that gives GB/s, then the most, in bytes/s.
``measured/RUN.json`` is a plan, with seconds a step and the most bytes in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.errors import InstanceError, in_file
from gangplan.instances.intake import read_json
from gangplan.instances.layout.calibrate import MeasuredStep
from gangplan.instances.layout.measured import MeasuredLayers
from gangplan.instances.layout.pool import GpuPool, Link
from gangplan.instances.layout.problem import Calibration, LayoutPlan, LayoutProblem
from gangplan.instances.layout.transformer import Transformer

SEQUENCE = 2048
"""Tokens of a sequence in all published runs."""
RESERVE, _RESERVES = 3.7e9, {"GH-96": 4.7e9}
"""Bytes of a GPU in use beside what the model needs: runtime, communicators, workspaces; fitted to the runs."""
_SHEETS = {
    "GH-96": (96e9, 4e12, 494.5e12),  # GH200 data sheet, 2023: TF32 "with sparsity" 989 TFLOPS
    "A100-80": (80e9, 2039e9, 156e12),  # A100 data sheet, 2021
    "A100-40": (40e9, 1555e9, 156e12),
    "V100-16": (16e9, 900e9, 15.7e12),  # V100 data sheet, 2020: no TF32
    "RTX-3090": (24e9, 936e9, 35.6e12),  # GA102 white paper, 2020
    "Titan-RTX": (24e9, 672e9, 16.3e12),  # Turing white paper, 2018: no TF32
    "RTX-2080": (11e9, 616e9, 13.4e12),  # the same, of the Ti: runs on it took more than 8 GB
}
"""Bytes, bytes/s of memory, and FLOP/s of products of 32 bits in tensor cores where there are such."""


def read_sailor_layers(folder: str | PathLike[str], model: str) -> MeasuredLayers:
    """Read the profiles of a model on all types of GPU that there are.

    Each block was measured by itself, which overstates small micro-batches: in a run, a pass of fewer sequences
    never takes longer than one of more, so the shortest of these counts. A profile of another number of layers is left
    out: that of GPT-Neo on GH200 is a copy of OPT-350's.

    Args:
        folder: has ``profiles`` and ``layers.json``.
        model: as their names begin.
    """
    root = Path(folder)
    sizes = read_json(root / "layers.json")
    with in_file(root / "layers.json"), _form():
        sizes = sizes[model]
    rows: list[tuple[str, int, int, Any, Any]] = []
    for path in sorted((root / "profiles").glob(f"{model}_*.json")):
        table, gpu = read_json(path), path.stem[len(model) + 1 :]
        with in_file(path), _form():
            every = [(int(b), t, by) for b, some in table.items() for t, by in some.items() if t in sizes]
            known = [(b, t, _sorted(by)) for b, t, by in every if len(by) == len(sizes[t])]
            for b, t, _ in known:
                least = np.min([by for x, y, by in known if x >= b and y == t], axis=0)
                rows.append((gpu, b, int(t), least, _sorted(sizes[t])))
    if not rows:
        raise InstanceError("model", f"there is no profile of {model!r} in {root / 'profiles'}")
    gpus, batches, tensor, seconds, layers = zip(*rows, strict=True)
    batch, (forward, backward, update) = np.array(batches), np.array(seconds).transpose(2, 0, 1)
    parts = "act_mem_bytes", "act_output_bytes", "params_floats"
    kept, sent, weights = (np.array([[x[name] for x in row] for row in layers], dtype=float) for name in parts)
    names, kept, sent = tuple(map(str, range(weights.shape[1]))), kept * batch[:, None], sent * batch[:, None]
    return MeasuredLayers(model, names, gpus, batch, np.array(tensor), forward, backward, update, weights, kept, sent)


def read_sailor_run(
    path: str | PathLike[str], model: MeasuredLayers | Transformer, calibration: Calibration | None = None
) -> MeasuredStep:
    """Read a measured run, which stands in a folder beside those of bandwidths.

    Stages in a row on GPUs alike are a pool. Where replicas are on unlike ones it is as slow as the slowest of each.

    Args:
        path: of the run.
        model: its layers, or what they are computed from.
        calibration: constants of the cost model.
    """
    run, root = read_json(path), Path(path).parent.parent
    near, far = (read_json(root / name) for name in ("intra_node_bandwidths.json", "network_coeffs_all_homo.json"))
    with in_file(path), _form():
        (pipeline,) = run["pipeline_list"]
        data, places = int(pipeline["dp"][0]), pipeline["tmp_per_stage"]
        mixes = [tuple(sorted({replica[0][0][0] for replica in stage})) for stage in places]
        tensor = [int(stage[0][1]) for stage in places]
        pools: list[GpuPool] = []
        pool_of: list[int] = []
        for (mix, t), stages in groupby(zip(mixes, tensor, strict=True)):
            inner = [_link(t, near[gpu][str(t)]) for gpu in mix if t > 1]
            outer = [_link(1 << 30, far["inter"][gpu][str(t)], t) for gpu in mix]
            memory, moved, flops = (min(_SHEETS[gpu][i] for gpu in mix) for i in range(3))
            pool_of += [len(pools)] * len(list(stages))
            count, levels = pool_of.count(len(pools)) * t * data, (min(x, key=_speed) for x in (inner, outer) if x)
            pools.append(GpuPool("+".join(mix), count, memory, moved, flops, 0.0, flops, tuple(levels)))
        if isinstance(model, MeasuredLayers):
            for mix in dict.fromkeys(mixes):
                model = model.mixed(mix) if len(mix) > 1 else model
        reserve = max(_RESERVES.get(gpu, RESERVE) for mix in mixes for gpu in mix)
        how: Any = {"reserve": reserve, "calibration": calibration or Calibration()}
        problem = LayoutProblem(model, tuple(pools), int(run["gbs"]), SEQUENCE, "fp32", **how)
        nothing, sizes = np.zeros(len(mixes), dtype=np.int32), [len(x) for x in pipeline["layers_per_stage"]]
        split = np.array(pool_of), np.array(tensor), np.array(sizes), nothing, nothing
        plan = LayoutPlan(*split, data, micro_batch=int(run["mbs"]), zero=0)
        return MeasuredStep(problem, plan, float(run["real"]), float(run["max_mem"]))


def _link(span: int, fit: Any, shared: int = 1) -> Link:
    """Return latency and bandwidth that come closest to a fit for 1 to 256 MB, of one of the GPUs that share it."""
    (*terms,), most = fit
    size = 1e6 * 2.0 ** np.arange(9)
    seconds = size / np.minimum(np.polyval(terms, np.arange(9)) * 1e9, most)
    rows = np.stack([np.ones(9), size], axis=1) / seconds[:, None]
    latency, each = np.linalg.lstsq(rows, np.ones(9), rcond=None)[0]
    return Link(span, 1 / (each * shared), max(0.0, float(latency)))


def _speed(link: Link) -> float:
    return link.bandwidth


def _sorted(by: dict[str, Any]) -> list[Any]:
    """Return the values of layers in their order."""
    return [by[str(i)] for i in range(len(by))]


@contextmanager
def _form() -> Iterator[None]:
    """Raise for what is not as published."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InstanceError):
            raise
        raise InstanceError("content", f"is not as Sailor publishes it: {error!r}") from None
