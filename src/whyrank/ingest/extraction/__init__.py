"""Facts extracted from files by a language model."""
