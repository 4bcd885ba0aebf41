"""The page of an evaluation, made of what was kept of it."""
