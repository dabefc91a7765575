"""Ruin and recreate on whole placements, compiled: what single gangs that are placed for good leave to be mended."""

from .mender import LONG, SHORT, Mender

__all__ = ["LONG", "SHORT", "Mender"]
