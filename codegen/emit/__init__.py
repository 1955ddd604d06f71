"""Nests as Python source."""
