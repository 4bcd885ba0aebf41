"""HTML report of an evaluation, rendered from its stored results."""
