"""Comparisons: gaps, sweeps, stores and sensitivity; their tables, pictures and pages in ``report``."""
