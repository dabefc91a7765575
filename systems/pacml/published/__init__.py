"""PAC-ML as published: a graph network reads a job's op graph and says how far the job is split, first fit where it runs.

Source: Parsonson, Shabka, Ottino and Zervas, arXiv 2301.13799; a network for each distribution of users, by PPO.
"""
