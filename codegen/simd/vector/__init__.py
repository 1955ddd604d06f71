"""Arithmetic, conversions and math on super-vectors and scalars."""
