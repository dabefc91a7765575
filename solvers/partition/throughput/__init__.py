"""Pipelined throughput: the least load of the busiest device."""
