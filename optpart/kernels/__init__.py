"""The compiled layer: state in typed structs, times in whole ticks, machine code kept on disk.

A room that needs speed defines its kernels itself and compiles them through this one.
"""
