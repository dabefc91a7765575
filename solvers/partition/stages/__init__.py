"""Replicated stages: the slowest stage of a pipeline on clusters of clusters."""
