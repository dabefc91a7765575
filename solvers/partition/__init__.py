"""Partition: which device runs which op of one job, a folder an objective."""
