"""Lower bounds on the iteration time of every strategy, and proven optima of small questions.

``load`` and ``average_path`` bound all shares of the batch at once. ``program`` bounds the
strategies that given actions per group can form; :mod:`~optpart.applications.training.bounds.rows`
lists the inequalities it combines, and :mod:`~optpart.applications.training.bounds.certificate`
writes a proof that the stand-alone checker accepts. ``exact`` finds the optimum over actions and
orders together.
"""
