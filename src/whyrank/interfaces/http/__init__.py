"""The HTTP interface, and the page it serves."""
