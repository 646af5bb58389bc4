"""Sources of a graph's costs, one per module."""
