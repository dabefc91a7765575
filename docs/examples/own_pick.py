"""A policy of one's own that picks the next job: checked, played on three grounds, and given to `Scheduler`."""

import numpy as np

import gangplan
from gangplan.instances.placement import Fleet
from gangplan.scheduler.policies.picking import SchedulerPick
from gangplan.simulator.ground import evaluate
from gangplan.simulator.picking import check_picks
from gangplan.systems import ground_of


class Shortest:
    """Start the shortest job that fits."""

    needs = ("seconds",)

    def act(self, scene):
        """Return the place of a job, or -1 to let all wait."""
        return int(np.where(scene.fits, scene.columns["seconds"], np.inf).argmin())


def main() -> dict[str, float]:
    """Print and return mean JCTs by ground."""
    check_picks(Shortest)
    means = {}
    for name in ("topdrl", "harmony", "marl"):
        ground = ground_of(name)(jobs=20)
        (run,) = evaluate(ground, {"mine": ground.picks(Shortest)}, [0])
        means[name] = run.figures["mean_jct"]
        print(name, means[name])
    gangplan.Scheduler(Fleet.regular(racks=1, nodes=2), SchedulerPick(Shortest()))
    return means


if __name__ == "__main__":
    main()
