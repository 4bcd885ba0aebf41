"""Settings: their table, their sources and their old names."""
