"""Plans in the formats of runtimes, and instances in those of solvers, one per module."""
