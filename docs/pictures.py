"""Draw pictures of pages anew: `python docs/pictures.py`, which solves small problems and writes docs/images/*.svg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gangplan
from gangplan.instances.placement import Fleet, GangJob

IMAGES = Path(__file__).parent / "images"


def running() -> tuple[Fleet, Any]:
    """Return a fleet and what a `Scheduler` starts on it."""
    fleet = Fleet.regular(racks=2, nodes=3, gpus=8)
    scheduler = gangplan.Scheduler(fleet)
    for i, gpus in enumerate((8, 4, 16, 2, 6, 4)):
        scheduler.submit(GangJob(f"job{i}", "any", workers=(gpus,)), seconds=600.0)
    return fleet, scheduler.decide()


def main() -> None:
    """Write them all; nothing of the date or the machine is in them."""
    graph = gangplan.generate("layered", ops=24, layers=6, training=False, devices=3, objective="latency", seed=1)
    stages = gangplan.generate("gpt", layers=3, devices=4, objective="stages")
    jobs = gangplan.generate("moldable", jobs=10)
    large = gangplan.LayoutProblem(
        gangplan.Transformer("70B", 80, 8192, 64, 8, 128, 128256, 28672), (gangplan.gpu_pool("H100", 8),), 64, 8192
    )
    passes = gangplan.generate("micro_batches", memory=3)
    every = {"latency": graph, "stages": stages, "schedule": jobs, "layout": large, "pipeline": passes}
    drawn: dict[str, tuple[Any, Any]] = {
        name: (problem, gangplan.solve(problem, 10, workers=1)) for name, problem in every.items()
    }
    for name, (problem, answer) in {**drawn, "scheduler": running()}.items():
        file = IMAGES / f"{name}.svg"
        gangplan.plot(problem, answer, file, **({"panel": "jobs"} if name == "schedule" else {}))
        print(file.name, file.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
