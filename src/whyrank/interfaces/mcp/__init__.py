"""The Model Context Protocol interface: five tools and a few resources for agents."""
