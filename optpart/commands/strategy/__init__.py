"""``optpart strategy``: its commands, one per module."""
