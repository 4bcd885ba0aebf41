"""Shipped for authors of stores and embedders: contract suites and fakes."""
