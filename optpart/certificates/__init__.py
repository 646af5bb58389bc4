"""Certificates of optima and bounds: how they are found, and the judge that checks them.

``check`` is the judge; it needs Python alone and shares nothing with the package.
"""
