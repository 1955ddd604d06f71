"""Decisions about nests: all heuristics, and no transformations."""
