"""Nests to Python source."""
