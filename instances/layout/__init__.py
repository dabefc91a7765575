"""The layout of a training job: how a large model is split over GPUs."""
