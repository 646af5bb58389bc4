"""Series decomposition: exact dynamic programmes over the parts of a graph."""
