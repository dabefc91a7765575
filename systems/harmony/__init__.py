"""Harmony: placements that do not hurt each other, by a policy that learned rewards (Bao, Peng, Wu; 2019, 2023)."""
