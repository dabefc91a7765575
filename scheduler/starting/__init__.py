"""Who starts, and where."""
