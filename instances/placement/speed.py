"""How fast models run, alone and beside others: the parameters of the cost model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..arrays import FloatArray, frozen, require, require_text, require_unique


@dataclass(frozen=True, slots=True, eq=False)
class SpeedModel:
    """What is known of K model types on T types of GPU; docs/placement.md has the formulas.

    Attributes:
        models: the model types by name.
        gpu_types: the GPU types by name.
        compute: seconds a worker computes in one step, alone, float64 (T, K); infinite where it cannot run.
        gradient: bytes that the workers synchronise in each step, float64 (K,).
        overlap: the share of the compute behind which synchronisation can hide, float64 (K,), from 0 to 1.
        host: what a job adds to the compute of another on the same node, as a share of it, float64 (K, K): row the job
            that suffers, column the one that is there.
        gpu: the same for jobs that share a GPU, float64 (K, K).
        duty: the share of the time that a gang of the model loads a link that it crosses, as those see it that cross it
            too, float64 (K,), from 0 to 1; 1 if none is given: links are shared by the number of gangs.
    """

    models: tuple[str, ...]
    gpu_types: tuple[str, ...]
    compute: FloatArray = field(metadata={"rank": 2, "null": "infinite"})
    gradient: FloatArray
    overlap: FloatArray
    host: FloatArray = field(metadata={"rank": 2})
    gpu: FloatArray = field(metadata={"rank": 2})
    duty: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        for name in ("models", "gpu_types"):
            values = tuple(getattr(self, name))
            object.__setattr__(self, name, values)
            for i, value in enumerate(values):
                require_text(value, f"{name}[{i}]")
            require_unique(values, name)
        k, t = len(self.models), len(self.gpu_types)
        if not frozen(self.duty, np.float64, "duty", (None,)).size:
            object.__setattr__(self, "duty", np.ones(k))
        shapes: dict[str, tuple[int, ...]] = {
            "compute": (t, k),
            "gradient": (k,),
            "overlap": (k,),
            "host": (k, k),
            "gpu": (k, k),
            "duty": (k,),
        }
        for name, shape in shapes.items():
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64, name, shape))
        require(self.compute > 0, self.compute, "compute", "is not positive")
        for name in ("gradient", "overlap", "host", "gpu", "duty"):
            values = getattr(self, name)
            require(np.isfinite(values) & (values >= 0), values, name, "is not a finite number from 0 on")
        for name in ("overlap", "duty"):
            values = getattr(self, name)
            require(values <= 1, values, name, "is more than 1")

    def __repr__(self) -> str:
        return f"SpeedModel({len(self.models)} models on {', '.join(self.gpu_types)})"
