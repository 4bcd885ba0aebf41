"""The door for agents: five tools and a few resources, by the Model Context Protocol."""
