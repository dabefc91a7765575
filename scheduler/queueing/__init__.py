"""Who waits, and before whom."""
