"""Heuristics of the literature: partitioners choose devices, schedulers choose orders.

Each is one module and a row in ``methods.parts``.
"""
