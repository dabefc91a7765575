"""All policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gangplan.instances import InstanceError

from .best_fit import BestFit
from .dot_prod import DotProd, Tetris
from .fgd import FGD
from .first_fit import FirstFit
from .gpu_clustering import GpuClustering
from .gpu_packing import GpuPacking
from .least_loaded import LeastLoaded
from .mix import Mix
from .policy import Policy
from .random_fit import RandomFit
from .stranding import Stranding

POLICIES: Mapping[str, Callable[[Mix, int], Policy]] = {
    "random": lambda mix, seed: RandomFit(seed),
    "least_loaded": lambda mix, seed: LeastLoaded(),
    "tetris": lambda mix, seed: Tetris(),
    "dot_prod": lambda mix, seed: DotProd(),
    "gpu_clustering": lambda mix, seed: GpuClustering(),
    "gpu_packing": lambda mix, seed: GpuPacking(),
    "best_fit": lambda mix, seed: BestFit(),
    "first_fit": lambda mix, seed: FirstFit(),
    "fgd": lambda mix, seed: FGD(mix),
    "stranding": lambda mix, seed: Stranding(mix),
}
"""What makes each policy, from the mix of tasks to expect and the seed of random choices."""


def make_policy(name: str, mix: Mix, seed: int = 0) -> Policy:
    """Return a policy that has seen nothing yet.

    Args:
        name: one of `POLICIES`.
        mix: the tasks to expect.
        seed: of random choices.

    Raises:
        InstanceError: if there is no policy of that name.
    """
    if name not in POLICIES:
        raise InstanceError("policy", f"{name!r} is not one of {', '.join(POLICIES)}")
    return POLICIES[name](mix, seed)
