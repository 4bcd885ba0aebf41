"""Embedders: text to unit vectors."""
