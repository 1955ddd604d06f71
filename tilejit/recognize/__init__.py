"""Recognize the layout of a buffer, or of what a function packs."""
