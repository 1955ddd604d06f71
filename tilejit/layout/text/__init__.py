"""Text forms of layouts: XLA's text, JSON, patterns, oneDNN's tags, and NumPy recipes."""
