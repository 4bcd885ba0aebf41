"""Asks the ports for runs and context, then calls ranking."""
