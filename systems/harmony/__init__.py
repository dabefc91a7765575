"""Harmony: placements that do not hurt each other, by a policy trained on a learned reward (Bao, Peng, Wu; 2019, 2023).

See docs/interference.md.
"""
