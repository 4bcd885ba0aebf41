"""Providers over HTTP: where they listen, and how they are asked."""
