"""Interfaces: command line, HTTP and MCP, over one JSON form and one table of errors."""
