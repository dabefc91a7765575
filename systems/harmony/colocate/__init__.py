"""A policy for gangs that slow one another down: greedy placement under an ensemble of fitted speeds, compiled."""
