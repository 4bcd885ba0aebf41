"""PostgreSQL beneath the index: the same tables, statements and answers as in a SQLite file."""
