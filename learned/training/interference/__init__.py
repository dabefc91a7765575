"""Models of how fast jobs run beside one another: `models.fit`, `judge.judge`.

docs/speeds.md says what they are and how well they predict what they have not seen.
"""
