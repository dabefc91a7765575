"""Step time: the makespan of one training step."""
