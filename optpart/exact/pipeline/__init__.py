"""Exact pipelines: contiguous stages by dynamic programming over downsets."""
