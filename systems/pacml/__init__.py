"""PAC-ML's cluster: blocks of servers, split jobs on them, and arrivals that are accepted at once or blocked.

Source: Parsonson et al., arXiv 2301.13799, and the published code.
"""
