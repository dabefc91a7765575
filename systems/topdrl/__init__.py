"""TopDRL's cluster: gangs whose speed depends on how close their GPUs are, and who is started next, and where.

Source: Ayadi et al., JPDC 204 (2025), as far as it is known: a job's speed from its communication cost is ours.
"""
