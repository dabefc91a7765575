"""The models of speed by name, and what is fitted and judged by it."""

from __future__ import annotations

from importlib.util import find_spec

from gangplan.instances.arrays import require_choice
from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.lazy import Later

from .ensemble import Model, fit_members
from .samples import Samples
from .simple import Fit, boosted_trees, low_rank_table, mean_ratio, ridge

MODELS: dict[str, tuple[Fit, tuple[str, ...]]] = {
    "mean ratio": (mean_ratio, ()),
    "low rank": (low_rank_table, ()),
    "ridge": (ridge, ()),
    "trees": (boosted_trees, ("sklearn",)),
    "sequence": (Later(f"{__package__}.sequence:sequence_to_sequence"), ("torch",)),
    "graph": (Later(f"{__package__}.graph:graph"), ("torch", "torch_geometric")),
    "pressure": (Later(f"{__package__}.pressure:pressure"), ("torch",)),
}
"""What fits each, and the packages that it needs; `pressure` is ours."""


def available() -> list[str]:
    """Return the models whose packages are installed."""
    return [name for name, (_, needs) in MODELS.items() if all(map(find_spec, needs))]


def fit(samples: Samples, seed: int = 0, *, model: str = "pressure") -> Model:
    """Fit a model of speeds to a log.

    Args:
        samples: the log.
        seed: of what members of the ensemble do not see, and of their weights.
        model: one of `MODELS`.

    Returns:
        What predicts mean and deviation of the logarithm of speeds, and stands in for a truth of the simulator.

    Raises:
        InstanceError: if the name is unknown, a package is missing, or there are too few samples.
    """
    require_choice(model, "model", MODELS)
    made, needs = MODELS[model]
    missing = [name for name in needs if find_spec(name) is None]
    if missing:
        raise InstanceError("model", f"{model!r} needs {', '.join(missing)}; {extra('learn')}")
    return fit_members(made, samples, seed)
