"""A scheduler's state as JSON, and back: for itself, for other nodes, for other settings."""
