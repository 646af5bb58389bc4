"""Random instances, goals and schedules, and a brute-force solver, for tests and benchmarks.

No other part of the package imports it.
"""
