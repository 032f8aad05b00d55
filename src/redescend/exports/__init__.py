"""Models for other tools: ONNX graphs, and a Python model for MLflow."""
