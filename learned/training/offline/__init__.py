"""Train and judge what decides offline."""
