"""Lower bounds of the makespan, one per module; all of them by name in ``best``."""
