"""Models of how fast jobs run beside one another, learned from logs: `models.fit`, `judge.judge`, `online.OnlineModel`.

docs/speed-models.md says what they are and how well they predict what they have not seen.
"""
