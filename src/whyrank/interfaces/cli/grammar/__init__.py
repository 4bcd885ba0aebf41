"""What users may type, family by family, and the help that teaches it."""
