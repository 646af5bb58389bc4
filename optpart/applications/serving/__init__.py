"""Layers of a model on machines that serve it, so that most tokens pass per second.

After Helix (Mei et al., ASPLOS 2025): :mod:`.problem` says what is given, :mod:`.plan` what a plan
must keep, :mod:`.bound` and :mod:`.sweep` what no plan exceeds, :mod:`.search` and :mod:`.exact`
how plans are found, and :mod:`.serve` puts them together.
"""
