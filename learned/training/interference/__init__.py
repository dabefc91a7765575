"""Models of how fast jobs run beside one another (`models.fit`) and their judge (`judge.judge`): docs/speeds.md."""
