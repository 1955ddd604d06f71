"""Compile source to machine code, load it, and store it on disk."""
