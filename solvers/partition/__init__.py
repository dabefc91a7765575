"""Partition: pipelined throughput, the maximum load over devices."""
