"""Real devices and links: a library of datasheet figures, and named clusters."""
