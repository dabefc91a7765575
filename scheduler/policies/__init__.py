"""Who decides beside the heuristic of `starting`; the rules are in `gangplan.solvers.placement.online`."""
