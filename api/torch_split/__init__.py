"""A plan written back to the PyTorch model it was made for: which module goes where, and the stages as processes."""
