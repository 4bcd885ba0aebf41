"""The default store: one SQLite file, one truth."""
