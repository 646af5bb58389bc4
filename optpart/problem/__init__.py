"""The problem: graphs, clusters, instances and their models, in exact rationals (design §2).

An instance can be asked here what it requires; it is not solved here.
"""
