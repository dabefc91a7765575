"""The graph policy of an online cluster: which job starts next, on which GPUs, or to wait; a rule that it corrects."""
