"""Connections to other systems; each is imported only when it is used."""
