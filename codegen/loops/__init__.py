"""Kernels of loops: their IR, its printer and interpreter, what may be vectorised, the super-vectoriser."""
