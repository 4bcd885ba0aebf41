"""Embedders, language models and rerankers, and the transport to them."""
