"""A gang on Ray: gangplan says which nodes, a placement group holds them, a task of each worker says where it runs.

``pip install ".[ray]"``; a cluster of one node is started on this machine unless RAY_ADDRESS names one.
"""

import os

import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from gangplan.doors.ray import RayScheduler


@ray.remote(num_cpus=1, num_gpus=1)
def work() -> str:
    """Return the node that a worker is on; put your training here."""
    return ray.get_runtime_context().get_node_id()


def main(workers: int = 2) -> list[str]:
    """Run a gang on the Ray cluster that was joined, and return the node of each worker."""
    cluster = RayScheduler(price=60)
    cluster.submit("train", workers, seconds=600)
    (start,) = cluster.decide(5.0).starts
    print({name[:8]: gpus for name, gpus in start.nodes.items()})
    group = cluster.placement_group(start)
    ray.get(group.ready(), timeout=120)
    seats = [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=i) for i in range(workers)]
    nodes = ray.get([work.options(scheduling_strategy=seat).remote() for seat in seats])
    ray.util.remove_placement_group(group)
    cluster.finish("train")
    return nodes


if __name__ == "__main__":
    ray.init() if os.environ.get("RAY_ADDRESS") else ray.init(num_cpus=4, num_gpus=4)
    print(main())
