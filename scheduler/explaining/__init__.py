"""What is told of decisions, waits and starts."""
