"""Models of how fast jobs run beside one another, see `models.fit`: docs/speeds.md."""
