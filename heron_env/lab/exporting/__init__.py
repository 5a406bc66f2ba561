"""Trained policies as files that other programs run: ONNX."""
