"""Methods for the order of passes in a pipeline."""
