"""Language models: questions to answers."""
