"""Train and judge what decides online."""
