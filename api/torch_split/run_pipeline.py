"""Run a model as a pipeline by `torch.distributed.pipelining`, cut where a plan cuts it.

``torchrun --nproc-per-node STAGES -m gangplan.torch_split.run_pipeline MODEL split.json``

Each process runs one stage, on its GPU if there is one, with the weights and example inputs of process 0, since a model
that is built again is another one unless it sets a seed. The inputs are one micro-batch; outputs are compared with
those of the whole model, and the mean seconds per micro-batch are printed. The exit code is 1 if outputs differ.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace, RawTextHelpFormatter

import torch
from torch import distributed
from torch.distributed.pipelining import ScheduleGPipe

from gangplan.instances.intake import read_json
from gangplan.instances.torch_model.load import LoadedModel, load_model
from gangplan.instances.torch_model.program import on_tensors

from .rehearsal import TOLERANCE, cut, difference, repeated, whole


def main() -> None:
    """Run one stage; the environment of `torchrun` says which."""
    options = _options()
    split = read_json(options.split)
    points = split["equal_layers"]["split_points"] if options.equal_layers else split["split_points"]
    rank, here = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", here) if on_gpu else torch.device("cpu")
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        _run(load_model(options.model), points, rank, device, options.micro_batches, options.steps)
    finally:
        distributed.destroy_process_group()


def _options() -> Namespace:
    parser = ArgumentParser(prog="run_pipeline", description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("model", help="as for gangplan profile")
    parser.add_argument("split", help="what gangplan split --out wrote")
    parser.add_argument("--equal-layers", action="store_true", help="cut into equally many layers instead")
    parser.add_argument("--micro-batches", type=int, default=8, help="of a step  [default: 8]")
    parser.add_argument("--steps", type=int, default=5, help="that are timed, after one that is not  [default: 5]")
    return parser.parse_args()


def _run(
    model: LoadedModel, points: dict[str, str], rank: int, device: torch.device, micro_batches: int, steps: int
) -> None:
    module = model.module.to(device)
    args, kwargs = on_tensors(lambda x: x.to(device), (model.args, model.kwargs))
    for own in (*module.parameters(), *module.buffers()):
        own.data.copy_(_shared(own))
    args, kwargs = on_tensors(_shared, (args, kwargs))
    model = LoadedModel(model.name, module, args, kwargs)
    expected = whole(model, 1) if rank == distributed.get_world_size() - 1 else []
    pipe = cut(model, points)
    last, processes = pipe.num_stages - 1, distributed.get_world_size()
    if processes != pipe.num_stages:
        raise SystemExit(f"run_pipeline: {pipe.num_stages} stages need as many processes, not {processes}")
    stage = pipe.build_stage(rank, device)
    given, named = repeated((args, kwargs), micro_batches) if rank == 0 else ((), {})
    schedule = ScheduleGPipe(stage, micro_batches)
    with torch.no_grad():
        found = schedule.step(*given, **named)
        distributed.barrier()
        start = time.perf_counter()
        for _ in range(steps):
            schedule.step(*given, **named)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        distributed.barrier()
        seconds = (time.perf_counter() - start) / (steps * micro_batches)
        if rank == last:
            print(f"{last + 1} stages, {micro_batches} micro-batches a step: {seconds:.4g} s per micro-batch")
            apart = difference(expected, found, micro_batches)
            print(f"largest relative difference from the whole model: {apart:.3g}")
            if not apart <= TOLERANCE:
                raise SystemExit(1)


def _shared(x: torch.Tensor) -> torch.Tensor:
    """Return what this tensor is in process 0."""
    sent = x.detach().clone(memory_format=torch.contiguous_format)
    distributed.broadcast(sent, 0)
    return sent


if __name__ == "__main__":
    main()
