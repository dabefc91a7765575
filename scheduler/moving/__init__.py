"""Jobs that go on elsewhere."""
