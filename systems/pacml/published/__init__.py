"""PAC-ML as published: a network reads the op graph and says how far a job is split, first fit where it runs.

Source: Parsonson, Shabka, Ottino and Zervas, arXiv 2301.13799; a network for each distribution of users, by PPO.
"""
