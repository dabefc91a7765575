"""The job types of PAC-ML from PipeDream profiles in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_unique
from gangplan.instances.intake import read_text
from gangplan.instances.readers import read
from gangplan.instances.readers.listing import listed_order

from .blocks import Blocks
from .jobs import STEPS, JobType
from .step import Units

MODELS = ("alexnet", "gnmt", "resnet18", "squeezenet1_0", "vgg16")
"""The five of the paper."""


def read_types(
    folder: str | Path,
    names: Sequence[str] = MODELS,
    *,
    blocks: Blocks | None = None,
    units: Units = "physical",
    steps: int = STEPS,
) -> tuple[JobType, ...]:
    """Return the types of the profiles ``NAME.txt`` in `folder`; other arguments as of `JobType.of`.

    The data loading node is kept, and ops are cut in the order of the file, as in the published set-up.

    Raises:
        InstanceError: if a profile is absent or wrong, or an argument is.
    """
    if not names:
        raise InstanceError("models", "names no model")
    home = Path(folder)
    if not home.is_dir():
        raise InstanceError("profiles", f"{str(folder)!r} is not a folder")
    require_unique(names, "models")
    found = []
    for i, name in enumerate(names):
        path = home / f"{name}.txt"
        if not path.is_file():
            raise InstanceError(f"models[{i}]", f"{name!r} has no profile {name}.txt in the folder of profiles")
        graph = read(path, keep_inputs=True).graph
        order = listed_order(read_text(path), graph)
        found.append(JobType.of(graph, order, name=name, blocks=blocks, units=units, steps=steps))
    return tuple(found)
