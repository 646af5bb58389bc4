"""Clusters of [G] that the package brings, as cluster files."""
