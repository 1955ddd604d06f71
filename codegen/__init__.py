"""The compiler: access maps, loop nests, Python source, native kernels. It knows no XLA."""

TILEJIT = True
"""Tells this package from others of its name."""
