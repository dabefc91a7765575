"""Kubernetes: a scheduler of pods, gang by gang."""
