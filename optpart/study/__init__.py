"""Comparisons: gaps, sweeps, stores, sensitivity; their tables and pages are in ``report``."""
