"""Training strategies on unlike devices ([G], HeteroG).

A training graph (:mod:`~optpart.applications.training.graph`) says what one iteration computes, and
how long each operation takes on each kind of device at any batch size. A strategy
(:mod:`~optpart.applications.training.strategy`) places or replicates groups of its operations on a
cluster (:mod:`~optpart.applications.training.cluster`) and says how their gradients are
synchronised. The compiler turns both into an :class:`~optpart.problem.instance.Instance`.
"""
