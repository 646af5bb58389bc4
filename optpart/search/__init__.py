"""Search: annealing with compiled moves, and large-neighbourhood search with exact parts.

It starts from heuristics and proves nothing by itself.
"""
