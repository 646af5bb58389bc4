"""The method ``auto``: several methods on one instance, in turn and side by side."""
