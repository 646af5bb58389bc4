"""``optpart strategy``, one command per module."""
