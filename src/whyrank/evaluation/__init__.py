"""Measures, evaluation sets and the harness, for any engine."""
