"""Text to tokens, stems, names, entities and query kind; pure."""
