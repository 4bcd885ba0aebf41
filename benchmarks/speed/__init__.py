"""How fast is it, beside what else there is: seeded corpora, contestants that take turns, ratios."""
