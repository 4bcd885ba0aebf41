"""all-MiniLM-L6-v2: fetched once, converted to ONNX here, and run by onnxruntime. No torch."""
