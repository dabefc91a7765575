"""What numba compiles: how it is written, and where its code is kept."""
