"""Contract suites and fakes, shipped for authors of stores and embedders."""
