"""The facade: one engine over a store, an embedder and a configuration."""
