"""Random instances, goals and schedules, and a judge that tries everything: for tests and benches.

Nothing else in the package imports it.
"""
