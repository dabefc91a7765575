"""Where a plan puts each module of a PyTorch model: solved and told without the command line."""

import sys
from pathlib import Path

import gangplan
from gangplan.instances.torch_model.build import model_problem
from gangplan.instances.torch_model.load import LoadedModel
from gangplan.torch_split.mapping import places
from gangplan.torch_split.pieces import forward_part


def main(devices: int = 2) -> dict[str, tuple[int, ...]]:
    """Return the stages of each module of the small GPT-2 beside this file."""
    sys.path.append(str(Path(__file__).parent))
    from gpt2 import pipelined

    module, args = pipelined()
    made = model_problem(LoadedModel("mine", module, args, {}), devices=devices)
    result = gangplan.solve(made.problem, time_limit=20)
    device, stage = forward_part(made.ops, result.plan)
    return {name or "(the model)": place.stages for name, place in places(made.ops, device, stage).items()}


if __name__ == "__main__":
    print(main())
