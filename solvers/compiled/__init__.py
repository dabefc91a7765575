"""What numba compiles: how it is written, where its code is kept, and whether it is there."""
