"""Ruin and recreate on whole placements, compiled: some gangs are taken off and put back where the batch gains most."""
