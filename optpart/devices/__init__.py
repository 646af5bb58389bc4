"""What real devices and links can do: a library of datasheet figures, and named clusters."""
