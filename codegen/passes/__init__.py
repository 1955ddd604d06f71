"""Passes: pure functions, nest in, nest out; one a file."""
