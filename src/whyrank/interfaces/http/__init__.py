"""The door for programs and people: HTTP, and the page it serves."""
