"""What instances are made from: file formats, sources of costs, real devices, and generators.

Each is one module and a row of its table.
"""
