"""TopDRL: a network of several branches picks the next job of the queue, a rule gives it the closest GPUs.

Source: Ayadi et al., JPDC 204 (2025), as far as it is known; the sizes of layers and of training are ours.
"""
