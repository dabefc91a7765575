"""A PyTorch model of one's own, cut into stages for `torch.distributed.pipelining`; docs/torch.md runs them."""

import torch
from torch import nn
from torch.distributed.pipelining import SplitPoint, pipeline

import gangplan
from gangplan.instances.torch_model.build import model_problem
from gangplan.instances.torch_model.load import LoadedModel
from gangplan.torch_split.mapping import cuts
from gangplan.torch_split.pieces import forward_part


def build():
    """Return a model and example inputs; put yours here."""
    blocks = [nn.Sequential(nn.LayerNorm(64), nn.Linear(64, width), nn.GELU(), nn.Linear(width, 64))
              for width in (64, 128, 256, 512, 256, 128)]  # fmt: skip
    return nn.Sequential(*blocks), (torch.randn(8, 64),)


def main(devices: int = 3) -> float:
    """Print where the model is cut, and return how far the stages one after the other are from the whole model."""
    module, args = build()
    made = model_problem(LoadedModel("mine", module, args, {}), device_type="A100", devices=devices, pipelining=True)
    result = gangplan.solve(made.problem, time_limit=20)
    print(result)
    _, stage = forward_part(made.ops, result.plan)
    points = {cut.module: SplitPoint[cut.point] for cut in cuts(made.ops, stage)}
    pipe = pipeline(module, args, split_spec=points)
    print(f"{pipe.num_stages} stages, cut at {', '.join(points)}")
    value = args[0]
    for i in range(pipe.num_stages):
        value = pipe.get_stage_module(i)(value)
    return (value - module(*args)).abs().max().item()


if __name__ == "__main__":
    print(f"largest difference from the whole model: {main():.2g}")
