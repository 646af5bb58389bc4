"""Methods that prove: CP-SAT, MILP, MiniZinc, enumeration, series decomposition and pipelines.

What they claim is checked by :mod:`~optpart.solution.claim` before it becomes a result.
"""
