"""Routines that generated kernels call. The modules import Numba, so import them lazily."""
