"""Nest to Python source: writer, expressions, kernels."""
