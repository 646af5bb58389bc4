"""Training strategies on unlike devices ([G], HeteroG).

A training graph (:mod:`~optpart.training.graph`) says what one iteration computes, and how long
each operation takes on each kind of device at any batch size. A strategy
(:mod:`~optpart.training.strategy`) places or replicates groups of its operations on a cluster
(:mod:`~optpart.training.cluster`) and says how their gradients are synchronised. The compiler turns
both into an :class:`~optpart.problem.instance.Instance`.
"""
