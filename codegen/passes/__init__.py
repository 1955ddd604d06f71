"""Passes: pure functions from nest to nest, one per file."""
