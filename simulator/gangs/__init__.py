"""Gangs on GPUs that are told apart and never shared, where close GPUs are faster: arrays and compiled steps."""
