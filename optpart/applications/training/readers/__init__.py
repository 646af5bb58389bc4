"""Training graphs from measured profiles, one source a module."""
