"""The vector index: exact cosines, a cache of vectors, and quantized preselection."""
