"""Training strategies for people: a table, a chart of the iteration, and a map of shares."""
