"""Runs to a ranking: fusion, stages, recipes and the order; pure."""
