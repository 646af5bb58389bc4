"""Where a graph's costs come from, one source a module."""
