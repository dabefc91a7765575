"""A policy that chooses job and GPUs together, or waits, on TopDRL's cluster: a network, rollouts, and a guard."""
