"""The command line, one command per module; rules of the problem belong to the rooms below."""
