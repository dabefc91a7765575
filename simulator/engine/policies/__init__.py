"""Policies of the engine, a file each."""
