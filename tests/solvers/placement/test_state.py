"""A placement under construction."""

from __future__ import annotations

import numpy as np

from gangplan.solvers.placement.build import placements
from gangplan.solvers.placement.enumeration import random_problem
from gangplan.solvers.placement.policies import first_fit
from gangplan.solvers.placement.prepare import PreparedBatch
from gangplan.solvers.placement.state import PlacementState


def test_a_node_holds_what_the_room_of_all_says() -> None:
    """A look at one node, of thousands, says what the room of all nodes says of it."""
    held = refused = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        batch = PreparedBatch(random_problem(rng))
        state = PlacementState(batch)
        for j in range(len(batch.jobs)):
            room = state.room(j)
            for node, workers in np.ndindex(batch.n_nodes, 3):
                beside = state.server_room(j, {node: (workers, 0)})
                for servers in (0, 1):
                    fits = bool(room[node] >= workers and beside[node] >= servers)
                    if workers or servers:
                        assert state.holds(j, node, workers, servers) == fits
                        held, refused = held + fits, refused + (not fits)
            if rng.random() < 0.7:
                for rows in list(placements(state, j, [first_fit]))[:1]:
                    state.add(j, rows)
                    state.settle()
    assert held > 100 and refused > 100
