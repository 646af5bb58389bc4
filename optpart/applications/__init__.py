"""Problems of their own, which use the rooms below as any user would.

Training strategies on unlike devices ([G]), the order of transfers ([H]), and reductions that show
why the problem is hard.
"""
