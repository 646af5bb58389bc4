"""Certificates of optima and bounds: how they are found, and the judge that checks them."""
