"""Latency: the time of one sample through calls to accelerators."""
