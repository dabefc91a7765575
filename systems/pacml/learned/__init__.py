"""PAC-ML's decision learned: how far to split each arriving job on a RAMP cluster, and on which block it runs.

Source: Parsonson et al., arXiv 2301.13799. The teacher knows the distribution of jobs and looks ahead; the policy knows
neither.
"""
