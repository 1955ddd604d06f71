"""Decisions about nests: every heuristic is here, and no transformation."""
