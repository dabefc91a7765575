"""The log of a `Scheduler`: each event and decision a line of JSON, and what can be made of it."""
