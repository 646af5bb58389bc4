"""Everything that solves, by name and under one signature, with its capabilities as data.

``auto`` runs a portfolio of the others; plug-ins are registered here.
"""
