"""Frozen values that every layer shares; no input or output."""
