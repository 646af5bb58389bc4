"""Tables and figures for papers, from the runs of a store."""
