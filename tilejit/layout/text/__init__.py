"""Texts of layouts: XLA's, JSON, patterns, oneDNN's tags, and NumPy recipes."""
