"""Measures, sets and the harness; takes any engine it is given."""
